"""The connection to the attempt: a fresh process after each death, and requests that are sent ahead."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from attn_kata.grading.attempt_process import OUTPUT_KEPT, AttemptProcess, Lines
from attn_kata.properties.failures import AttemptDied, OutOfTime
from attn_kata.protocol import replies, wire
from attn_kata.protocol.messages import Block, Load, Request

START_SECONDS = 30.0  # for a process to be there and confined; a spawned one imports torch first
MAX_DEATHS = 3
HUNG_SECONDS = 2.0  # for a call of an attempt that did not answer before: most likely it will not again


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


class Connection:
    """The attempt as the hidden tests' handle needs it: `ask`, with a fresh process after each death.

    Raises AttemptDied from `ask` once for each death; `deaths` counts them. A fresh process is given the source with `load`,
    and what was blocked is blocked in it, before it is asked anything.
    """

    def __init__(
        self, supply: Supply, load: Load, *, call_seconds: float, deadline: float, least_tier: int = 0
    ) -> None:
        self._supply = supply
        self._load = load
        self._least_tier = least_tier
        self._call_seconds = call_seconds
        self._deadline = deadline
        self._process: AttemptProcess | None = None
        self._posted: deque[tuple[bytes, int]] = deque()  # questions asked ahead, with the numbers of their replies
        self._asks_ahead = True
        self.output = bytearray()
        self.deaths = 0
        self.generation = 0  # counts processes: modules built in an earlier one are gone
        self.force: tuple[str, ...] = ()
        self._blocks: Block | None = None

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
            loaded = self._answer(self._load)
            if loaded.status == wire.OK and self._blocks is not None:
                self._answer(self._blocks)
            return loaded
        except AttemptDied as death:
            raise self._died(death) from None

    def ask_ahead(self, questions: Sequence[bytes]) -> None:
        """Ask what is most likely asked next, in this order and no two alike, so that it is answered meanwhile."""
        if self._process is None or not self._asks_ahead:
            return
        try:
            self._settle(min(HUNG_SECONDS, self._left()), until=questions[0] if questions else None)
        except AttemptDied:  # of what nobody asks: one that hangs or dies there does so once
            self._asks_ahead = False
            self._end(patient=False)
            return
        # What is left was asked ahead the last time, and is the beginning of this.
        self._posted.extend((question, self._process.post(question)) for question in questions[len(self._posted) :])

    def post(self, request: Request) -> None:
        """Ask, and do not wait: the reply is that of `ask`, in the same order. Raises AttemptDied."""
        process = self._alive()
        question = wire.encode_question(request)
        self._posted.append((question, process.post(question)))

    def ask(self, request: Request) -> wire.Reply:
        """The reply to a request; a dead process is replaced first. Raises AttemptDied."""
        self._alive()
        try:
            return self._answer(request)
        except AttemptDied as death:
            raise self._died(death) from None

    def block(self, words: tuple[str, ...]) -> None:
        """From now on have operations refuse whose names contain one of these words, in every process to come too."""
        self._blocks = Block(words=words)
        if self._process is None:
            self._alive()  # a fresh process is blocked before it is asked anything
        else:
            self.ask(self._blocks)

    def _alive(self) -> AttemptProcess:
        """The process, a fresh one where the one before died. Raises AttemptDied."""
        if self.deaths >= MAX_DEATHS:  # a diagnosis would wait for as many deadlines as it has probes
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

    def collect(self) -> None:
        """Take what has been printed; where somebody else reads that, the process is ended for it."""
        if self._process is None:
            return
        if self._process.prints_to_us:
            self._process.drain()
        else:
            self.stop()

    def _answer(self, request: Request) -> wire.Reply:
        assert self._process is not None
        seconds = min(self._call_seconds, self._left())
        question = wire.encode_question(request)
        if self._posted and self._posted[0][0] == question:
            _, nonce = self._posted.popleft()
        else:
            self._settle(seconds)
            nonce = self._process.post(question)
        reply = self._process.reply(nonce, seconds)
        if reply.status == wire.NO_MEMORY:
            raise AttemptDied("it ran out of memory")
        if not replies.answers(request, reply):
            raise AttemptDied("its process sent something that is not an answer to what was asked")
        return reply

    def _settle(self, seconds: float, *, until: bytes | None = None) -> None:
        """Read the replies to what was asked ahead and is not asked after all. Raises AttemptDied."""
        assert self._process is not None
        deadline = time.monotonic() + seconds
        while self._posted and self._posted[0][0] != until:
            self._process.reply(self._posted[0][1], deadline - time.monotonic())
            self._posted.popleft()

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _end(self, *, patient: bool) -> str:
        ended = self._supply.end(patient=patient)
        self._posted.clear()
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
            return OutOfTime("the grading ran out of time" if self._left() <= 0 else f"no answer within {waited:g} s")
        return AttemptDied(death.reason or how or "its process ended without an answer")


class ConfinementFailed(Exception):
    """The isolation that was promised could not be put in force; nothing of the attempt was run."""


class TooWeak(Exception):
    """The isolation in force is less than was asked for at least; nothing of the attempt was run. `notes` say why."""

    def __init__(self, notes: tuple[str, ...]) -> None:
        super().__init__(" ".join(notes))
        self.notes = notes
