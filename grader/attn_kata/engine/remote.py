"""The attempt as the grader asks it: with a fresh process after each death, and ahead of time where that can be."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from . import protocol, wire
from .line import OUTPUT_KEPT, AttemptDied, AttemptProcess, Lines, OutOfTime

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
        self._posted: deque[tuple[bytes, int]] = deque()  # questions asked ahead, with the numbers of their replies
        self._asks_ahead = True
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

    def post(self, request: wire.Request) -> None:
        """Ask, and do not wait: the reply is that of `ask`, in the same order. Raises AttemptDied."""
        process = self._alive()
        question = wire.encode_question(request)
        self._posted.append((question, process.post(question)))

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply to a request; a dead process is replaced first. Raises AttemptDied.

        What is recorded is asked again unrecorded: an attempt that does as it was told only while it is watched is found.
        """
        record = request.fields.get("record")
        if not record:
            return self._ask(request)
        if record is not True:
            self.forbidden.update(record)
        recorded, unrecorded = twice(request)
        watched = self._ask(recorded)
        if watched.status != wire.OK:
            return watched
        unwatched = self._ask(unrecorded)
        return watched if protocol.same_tensors(watched, unwatched) else _OTHERWISE

    def _ask(self, request: wire.Request) -> wire.Reply:
        self._alive()
        try:
            return self._answer(request)
        except AttemptDied as death:
            raise self._died(death) from None

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

    def _answer(self, request: wire.Request) -> wire.Reply:
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
        if not protocol.answers(request, reply):
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


def twice(request: wire.Request) -> tuple[wire.Request, wire.Request]:
    """The two requests that a recorded one is made of: recorded and not, with the same seed."""
    recorded = replace(request, fields={**request.fields, "seed": request.fields.get("seed") or 0})
    return recorded, replace(recorded, fields={**recorded.fields, "record": False})


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
