"""The connection to the attempt: a fresh process after each death, and requests that are sent ahead."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from attn_kata.grading.attempt_process import OUTPUT_KEPT, AttemptProcess, Endpoints
from attn_kata.properties.failures import AttemptDied, OutOfTime
from attn_kata.protocol import replies, wire
from attn_kata.protocol.messages import Adapt, Block, Load, Request

START_SECONDS = 30.0  # a process must have started and be confined by then; a spawned one imports torch first
MAX_DEATHS = 3
HUNG_SECONDS = 2.0  # per call, once the attempt has failed to answer a call: it will probably hang again


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended, in words, or "" if we ended it; and its prints, if the engine read them."""

    how: str = ""
    printed: bytes = b""


class AttemptLauncher(Protocol):
    """Starts and ends attempt processes."""

    def start(self) -> Endpoints:
        """Start an attempt process and return its connection. The one before is ended."""

    def end(self, *, patient: bool) -> Ended:
        """End the current process and say how it ended. With `patient`, a crashing one first gets a moment to end by itself."""


class Connection:
    """The connection that the hidden tests' handle uses: `ask`, with a fresh process after each death.

    For each death, `ask` raises AttemptDied once; `deaths` counts them. A fresh process first gets the source with `load`, and
    the same operations are blocked in it again.
    """

    def __init__(
        self, launcher: AttemptLauncher, load: Load, *, call_seconds: float, deadline: float, least_tier: int = 0
    ) -> None:
        self._launcher = launcher
        self._load = load
        self._least_tier = least_tier
        self._call_seconds = call_seconds
        self._deadline = deadline
        self._process: AttemptProcess | None = None
        self._open_requests: deque[tuple[bytes, int]] = deque()  # requests that were sent ahead, with their nonces
        self._prefetches = True
        self.output = bytearray()
        self.deaths = 0
        self.generation = 0  # counts processes: modules built in an earlier one are gone
        self.force: tuple[str, ...] = ()
        self._adapter: Adapt | None = None
        self._blocks: Block | None = None

    def start(self) -> wire.Reply:
        """Start a process and load the attempt in it. Returns the reply to the load. Raises AttemptDied."""
        self.stop()
        self.generation += 1
        process = AttemptProcess(self._launcher.start(), self.output)
        self._process = process
        try:
            hello = process.hello(min(START_SECONDS, self._seconds_left()))
            if hello.status != wire.OK:
                raise ConfinementFailed("; ".join(hello.texts))
            self.force = hello.texts
            if int(hello.texts[0]) < self._least_tier:
                raise TooWeak(hello.texts[3:])
            loaded = self._answer(self._load)
            for again in (self._adapter, self._blocks):
                if loaded.status == wire.OK and again is not None:
                    self._answer(again)
            return loaded
        except AttemptDied as death:
            raise self._died(death) from None

    def prefetch(self, questions: Sequence[bytes]) -> None:
        """Send the likely next requests, in order, so that the attempt computes meanwhile. No two may be equal."""
        if self._process is None or not self._prefetches:
            return
        try:
            first = questions[0] if questions else None
            self._discard_open_replies(min(HUNG_SECONDS, self._seconds_left()), until=first)
        except AttemptDied:  # on a request that no test makes: stop, so that this costs time only once
            self._prefetches = False
            self._end(patient=False)
            return
        # Requests that are still open were sent by the last prefetch. They are the first of these.
        to_send = questions[len(self._open_requests) :]
        self._open_requests.extend(zip(to_send, self._process.post_all(to_send), strict=True))

    def post(self, request: Request) -> None:
        """Send a request without waiting; `ask` with an equal request later reads the reply. Raises AttemptDied."""
        process = self._alive()
        question = wire.encode_question(request)
        self._open_requests.append((question, process.post(question)))

    def ask(self, request: Request) -> wire.Reply:
        """The reply to a request. If the process has died, a fresh one is started first. Raises AttemptDied."""
        self._alive()
        try:
            return self._answer(request)
        except AttemptDied as death:
            raise self._died(death) from None

    def block(self, words: tuple[str, ...]) -> None:
        """Block the operations whose names contain one of these words, in this process and in every later one."""
        self._blocks = Block(words=words)
        if self._process is None:
            self._alive()  # a fresh process is blocked before it is asked anything
        else:
            self.ask(self._blocks)

    def adapt(self, adapter: str) -> wire.Reply:
        """Run an adapter beside the attempt, in this process and in every later one. Raises AttemptDied."""
        self._adapter = Adapt(tensors=(wire.source_tensor(adapter.encode()),))
        return self.ask(self._adapter)

    def _alive(self) -> AttemptProcess:
        """The process. If it has died, a fresh one is started. Raises AttemptDied."""
        if self.deaths >= MAX_DEATHS:  # otherwise a diagnosis would wait for one deadline per probe
            raise AttemptDied(f"not tried: the attempt's process died {MAX_DEATHS} times")
        if self._process is None:
            loaded = self.start()
            if loaded.status != wire.OK or self._process is None:
                raise self._died(AttemptDied("it could not be imported a second time"))
        return self._process

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._end(patient=False)

    def close(self) -> None:
        """Close the connection to the process, which the engine ends."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def collect(self) -> None:
        """Collect the attempt's prints. If the engine reads them, the process is ended: only then does the engine send them."""
        if self._process is None:
            return
        if self._process.prints_to_us:
            self._process.drain()
        else:
            self.stop()

    def _answer(self, request: Request) -> wire.Reply:
        assert self._process is not None
        seconds = min(self._call_seconds, self._seconds_left())
        question = wire.encode_question(request)
        if self._open_requests and self._open_requests[0][0] == question:
            _, nonce = self._open_requests.popleft()
        else:
            self._discard_open_replies(seconds)
            nonce = self._process.post(question)
        reply = self._process.reply(nonce, seconds)
        if reply.status == wire.NO_MEMORY:
            raise AttemptDied("it ran out of memory")
        if not replies.answers(request, reply):
            raise AttemptDied("its process sent a reply that does not answer the request")
        return reply

    def _discard_open_replies(self, seconds: float, *, until: bytes | None = None) -> None:
        """Read and discard replies to prefetched requests, up to the request `until`. Raises AttemptDied."""
        assert self._process is not None
        deadline = time.monotonic() + seconds
        while self._open_requests and self._open_requests[0][0] != until:
            self._process.reply(self._open_requests[0][1], deadline - time.monotonic())
            self._open_requests.popleft()

    def _seconds_left(self) -> float:
        return self._deadline - time.monotonic()

    def _end(self, *, patient: bool) -> str:
        ended = self._launcher.end(patient=patient)
        self._open_requests.clear()
        if self._process is not None:
            self._process.close()
            self._process = None
        self.output += ended.printed[: max(0, OUTPUT_KEPT - len(self.output))]
        return ended.how

    def _died(self, death: AttemptDied) -> AttemptDied:
        self.deaths += 1
        how = self._end(patient=not isinstance(death, OutOfTime))
        if isinstance(death, OutOfTime):
            waited, self._call_seconds = self._call_seconds, min(self._call_seconds, HUNG_SECONDS)
            return OutOfTime(
                "the grading ran out of time" if self._seconds_left() <= 0 else f"no answer within {waited:g} s"
            )
        return AttemptDied(death.reason or how or "its process ended without an answer")


class ConfinementFailed(Exception):
    """The isolation could not be set up, so the attempt was not run."""


class TooWeak(Exception):
    """The isolation is weaker than the job requires, so the attempt was not run. `notes` say why."""

    def __init__(self, notes: tuple[str, ...]) -> None:
        super().__init__(" ".join(notes))
        self.notes = notes
