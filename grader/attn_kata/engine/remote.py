"""The grader's side of the wire: an attempt process whose every read and write has a deadline."""

from __future__ import annotations

import os
import secrets
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from . import wire

OUTPUT_KEPT = 64 << 10  # bytes of an attempt's prints that are kept; the rest is read and dropped


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
    output: int  # the read end of the pipe that the attempt prints into


class Supply(Protocol):
    """Where attempt processes come from."""

    def fresh(self) -> Lines:
        """The lines of a new attempt process; the one before is ended."""

    def end(self) -> str:
        """End the current process and say how it ended: "" where it was ended by us."""


class AttemptProcess:
    """One attempt process. Replies are decoded as what they are: bytes of somebody else's."""

    def __init__(self, lines: Lines, output: bytearray) -> None:
        self._channel = lines.channel
        self._channel.setblocking(False)
        self._pipe: int | None = lines.output
        os.set_blocking(lines.output, False)
        self._output = output
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

    def close(self) -> None:
        """Take what is left of the prints, and let go of both ends."""
        self._channel.close()
        if self._pipe is not None:
            self._drain()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _decode(self, nonce: int) -> wire.Reply:
        try:
            return wire.decode_reply(self._receive, nonce)
        except wire.WireError as error:
            raise AttemptDied(f"it broke off the conversation with the grader ({error})") from error
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
        buffer = bytearray()
        while len(buffer) < count:
            try:
                part = self._channel.recv(min(count - len(buffer), 1 << 20))
            except BlockingIOError:
                self._wait(for_writing=False)
                continue
            except OSError:
                part = b""
            if not part:
                raise AttemptDied("")
            buffer += part
        return buffer

    def _wait(self, *, for_writing: bool) -> None:
        """Wait until the channel is ready, reading the prints meanwhile so that a full pipe blocks nobody."""
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise OutOfTime("it did not answer in time")
            reading: list[object] = [] if self._pipe is None else [self._pipe]
            if not for_writing:
                reading.append(self._channel)
            readable, writable, _ = select.select(reading, [self._channel] if for_writing else [], [], left)
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

    Raises AttemptDied from `ask` once for each death; `deaths` counts them. `rebuild` is called with a fresh process so that
    the source is loaded before anything is asked.
    """

    def __init__(self, supply: Supply, load: wire.Request, *, call_seconds: float, deadline: float) -> None:
        self._supply = supply
        self._load = load
        self._call_seconds = call_seconds
        self._deadline = deadline
        self._process: AttemptProcess | None = None
        self.output = bytearray()
        self.deaths = 0
        self.generation = 0  # counts processes: modules built in an earlier one are gone
        self.force: tuple[str, ...] = ()
        self.on_fresh: Callable[[], None] = lambda: None

    def start(self) -> wire.Reply:
        """Start a process and load the attempt in it; the reply to the load."""
        self.generation += 1
        process = AttemptProcess(self._supply.fresh(), self.output)
        self._process = process
        try:
            hello = process.hello(min(20.0, self._left()))
            if hello.status != wire.OK:
                raise ConfinementFailed("; ".join(hello.texts))
            self.force = hello.texts
            return process.ask(self._load, min(self._call_seconds, self._left()))
        except AttemptDied as death:
            raise self._died(death) from None

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply to a request; a dead process is replaced first. Raises AttemptDied."""
        if self._process is None:
            loaded = self.start()
            if loaded.status != wire.OK:
                self._process = None
                self.deaths += 1
                raise AttemptDied("it could not be imported a second time")
        assert self._process is not None
        try:
            return self._process.ask(request, min(self._call_seconds, self._left()))
        except AttemptDied as death:
            raise self._died(death) from None

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._supply.end()
            self._process.close()
            self._process = None

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _died(self, death: AttemptDied) -> AttemptDied:
        self.deaths += 1
        how = self._supply.end()
        if self._process is not None:
            self._process.close()
            self._process = None
        if isinstance(death, OutOfTime):
            whole = self._left() <= 0
            return OutOfTime("the grading ran out of time" if whole else f"no answer within {self._call_seconds:g} s")
        return AttemptDied(death.reason or how or "its process ended without an answer")


class ConfinementFailed(Exception):
    """The isolation that was promised could not be put in force; nothing of the attempt was run."""
