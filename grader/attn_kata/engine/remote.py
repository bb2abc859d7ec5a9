"""The grader's side of the wire: an attempt process whose every read and write has a deadline."""

from __future__ import annotations

import os
import secrets
import select
import socket
import time
from dataclasses import dataclass, replace
from typing import Any, Protocol

from . import protocol, wire

START_SECONDS = 30.0  # for a process to be there and confined; a spawned one imports torch first
OUTPUT_KEPT = 64 << 10  # bytes of an attempt's prints that are kept; the rest is read and dropped
MAX_DEATHS = 3
HUNG_SECONDS = 2.0  # for a call of an attempt that did not answer before: most likely it will not again


class AttemptDied(Exception):
    """The attempt's process is gone or was ended: `reason` says why, in words for the report."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OutOfTime(AttemptDied):
    """The attempt did not answer within its time."""


@dataclass(frozen=True, kw_only=True)
class Lines:
    """The grader's ends of one attempt process."""

    channel: socket.socket
    output: int | None  # the read end of the pipe that the attempt prints into; None where somebody else reads it


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended, in words, or "" where it was ended by us; and its prints where somebody else read them."""

    how: str = ""
    printed: bytes = b""


class Supply(Protocol):
    """Where attempt processes come from."""

    def fresh(self) -> Lines:
        """The lines of a new attempt process; the one before is ended."""

    def end(self, *, patient: bool) -> Ended:
        """End the current process and say how it ended. Being patient lets one that is dying of itself do so."""


class AttemptProcess:
    """One attempt process. Replies are decoded as what they are: bytes of somebody else's."""

    def __init__(self, lines: Lines, output: bytearray) -> None:
        self._channel = lines.channel
        self._channel.setblocking(False)
        self._pipe = lines.output
        if lines.output is not None:
            os.set_blocking(lines.output, False)
        self._output = output
        self._pending = bytearray()  # what has arrived and was not asked for yet
        self._deadline = 0.0

    def hello(self, seconds: float) -> wire.Reply:
        """What the child says once it is confined, before it runs anything of the attempt's."""
        self._deadline = time.monotonic() + seconds
        return self._decode(0)

    def ask(self, request: wire.Request, seconds: float) -> wire.Reply:
        """Send one request and read its reply. Raises OutOfTime, or AttemptDied where no reply comes."""
        self._deadline = time.monotonic() + seconds
        nonce = secrets.randbits(63) + 1
        self._send(wire.encode_request(request, nonce))
        return self._decode(nonce)

    @property
    def prints_to_us(self) -> bool:
        """Whether the prints come here, and not to somebody else."""
        return self._pipe is not None

    def drain(self) -> None:
        """Take what has been printed."""
        if self._pipe is not None:
            self._drain()

    def close(self) -> None:
        """Take what is left of the prints, and let go of both ends."""
        self._channel.close()
        self.drain()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _decode(self, nonce: int) -> wire.Reply:
        try:
            return wire.decode_reply(self._receive, nonce)
        except wire.WireError as error:
            raise AttemptDied(f"its process sent something that is not a reply: {error}") from error
        except MemoryError as error:
            raise AttemptDied("its reply does not fit in memory") from error

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._channel.send(view) :]
            except BlockingIOError:
                self._wait(for_writing=True)
            except OSError as error:
                raise AttemptDied("") from error

    def _receive(self, count: int) -> bytearray:
        # Grown as bytes arrive, so that a promised size costs nothing before it is kept.
        while len(self._pending) < count:
            try:
                part = self._channel.recv(min(max(count - len(self._pending), 1 << 16), 1 << 20))
            except BlockingIOError:
                self._wait(for_writing=False)
                continue
            except OSError:
                part = b""
            if not part:
                raise AttemptDied("")
            self._pending += part
            if time.monotonic() > self._deadline:  # a flood is always ready to be read
                raise OutOfTime("it did not answer in time")
        taken = self._pending[:count]
        del self._pending[:count]
        return taken

    def _wait(self, *, for_writing: bool) -> None:
        """Wait until the channel is ready, reading the prints meanwhile so that a full pipe blocks nobody."""
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise OutOfTime("it did not answer in time")
            reading: list[Any] = [] if self._pipe is None else [self._pipe]
            writing = [self._channel] if for_writing else []
            if not for_writing:
                reading.append(self._channel)
            readable, writable, _ = select.select(reading, writing, [], left)
            if self._pipe in readable:
                self._drain()
            if self._channel in readable or writable:
                return

    def _drain(self) -> None:
        assert self._pipe is not None
        for _ in range(16):  # bounded, so that a flood of prints does not keep the deadline from being seen
            try:
                part = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                part = b""
            if not part:
                os.close(self._pipe)
                self._pipe = None
                return
            if len(self._output) < OUTPUT_KEPT:
                self._output += part[: OUTPUT_KEPT - len(self._output)]


class Attempt:
    """The attempt as the hidden tests' handle needs it: `ask`, with a fresh process after each death.

    Raises AttemptDied from `ask` once for each death; `deaths` counts them. A fresh process is given the source with `load`
    before it is asked anything.
    """

    def __init__(
        self, supply: Supply, load: wire.Request, *, call_seconds: float, deadline: float, least_tier: int = 0
    ) -> None:
        self._supply = supply
        self._load = load
        self._least_tier = least_tier
        self._call_seconds = call_seconds
        self._deadline = deadline
        self._process: AttemptProcess | None = None
        self.output = bytearray()
        self.deaths = 0
        self.generation = 0  # counts processes: modules built in an earlier one are gone
        self.force: tuple[str, ...] = ()
        self.forbidden: set[str] = set()  # words in the names of what was recorded calls may not use

    def start(self) -> wire.Reply:
        """Start a process and load the attempt in it; the reply to the load. Raises AttemptDied."""
        self.stop()
        self.generation += 1
        process = AttemptProcess(self._supply.fresh(), self.output)
        self._process = process
        try:
            hello = process.hello(min(START_SECONDS, self._left()))
            if hello.status != wire.OK:
                raise ConfinementFailed("; ".join(hello.texts))
            self.force = hello.texts
            if int(hello.texts[0]) < self._least_tier:
                raise TooWeak(hello.texts[3:])
            return self._answer(self._load)
        except AttemptDied as death:
            raise self._died(death) from None

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply to a request; a dead process is replaced first. Raises AttemptDied.

        What is recorded is asked again unrecorded: an attempt that does as it was told only while it is watched is found.
        """
        record = request.fields.get("record")
        if not record:
            return self._ask(request)
        if record is not True:
            self.forbidden.update(record)
        seeded = replace(request, fields={**request.fields, "seed": request.fields.get("seed") or 0})
        watched = self._ask(seeded)
        if watched.status != wire.OK:
            return watched
        unwatched = self._ask(replace(seeded, fields={**seeded.fields, "record": False}))
        return watched if protocol.same_tensors(watched, unwatched) else _OTHERWISE

    def _ask(self, request: wire.Request) -> wire.Reply:
        if self.deaths >= MAX_DEATHS:  # a diagnosis would wait for as many deadlines as it has probes
            raise AttemptDied(f"not tried: the attempt's process died {MAX_DEATHS} times")
        if self._process is None:
            loaded = self.start()
            if loaded.status != wire.OK:
                raise self._died(AttemptDied("it could not be imported a second time"))
        try:
            return self._answer(request)
        except AttemptDied as death:
            raise self._died(death) from None

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._end(patient=False)

    def collect(self) -> None:
        """Take what has been printed; where somebody else reads that, the process is ended for it."""
        if self._process is None:
            return
        if self._process.prints_to_us:
            self._process.drain()
        else:
            self.stop()

    def _answer(self, request: wire.Request) -> wire.Reply:
        assert self._process is not None
        reply = self._process.ask(request, min(self._call_seconds, self._left()))
        if reply.status == wire.NO_MEMORY:
            raise AttemptDied("it ran out of memory")
        if not protocol.answers(request, reply):
            raise AttemptDied("its process sent something that is not an answer to what was asked")
        return reply

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _end(self, *, patient: bool) -> str:
        ended = self._supply.end(patient=patient)
        if self._process is not None:
            self._process.close()
            self._process = None
        self.output += ended.printed[: max(0, OUTPUT_KEPT - len(self.output))]
        return ended.how

    def _died(self, death: AttemptDied) -> AttemptDied:
        self.deaths += 1
        how = self._end(patient=True)
        if isinstance(death, OutOfTime):
            waited, self._call_seconds = self._call_seconds, min(self._call_seconds, HUNG_SECONDS)
            return OutOfTime("the grading ran out of time" if self._left() <= 0 else f"no answer within {waited:g} s")
        return AttemptDied(death.reason or how or "its process ended without an answer")


_OTHERWISE = wire.Reply(
    status=wire.BAD_RESULT,
    texts=("gave another answer when it was asked again, unobserved, with the same inputs",),
    tensors=(),
)


class ConfinementFailed(Exception):
    """The isolation that was promised could not be put in force; nothing of the attempt was run."""


class TooWeak(Exception):
    """The isolation in force is less than was asked for at least; nothing of the attempt was run. `notes` say why."""

    def __init__(self, notes: tuple[str, ...]) -> None:
        super().__init__(" ".join(notes))
        self.notes = notes
