"""What the hidden tests will ask of a right attempt, case by case: it can be asked ahead, and answers while we compare.

Every case is seeded, so its questions are the same from grading to grading, down to the last bit, as long as the answers are
right. Where they are not, what was foreseen is not what is asked, and is dropped; what is made of answers is not foreseen.
"""

from __future__ import annotations

import itertools

from ..engine import wire
from ..engine.remote import twice
from .handle import OF_ANSWERS, Transport
from .runner import Case


class Noting:
    """A Transport that answers as the one under it does, and notes what each case asks of it."""

    generation = 0

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cases: dict[Case, int] = {}  # their places in the order in which they were run
        self._questions: list[list[bytes]] = []
        self._now: Case | None = None  # the case to note, as far as it can be foreseen
        self._cut_short: set[Case] = set()

    def begin(self, case: Case | None) -> None:
        """From now on this case asks; None is none, and then nothing is noted."""
        self._now = None if case in self._cases else case
        if self._now is not None:
            self._cases[self._now] = len(self._questions)
            self._questions.append([])

    def after(self, case: Case | None) -> list[bytes]:
        """What is asked in this case and the next, as far as it can be foreseen; nothing where the case was not noted."""
        place = None if case is None else self._cases.get(case)
        if place is None:
            return []
        return [*itertools.chain(*self._questions[place : place + (1 if case in self._cut_short else 2)])]

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply of the one under it."""
        if self._now is not None and request.fields.get(OF_ANSWERS):
            self._cut_short.add(self._now)
            self._now = None
        if self._now is not None:
            each = twice(request) if request.fields.get("record") else (request,)
            self._questions[-1] += map(wire.encode_question, each)
        return self._transport.ask(request)
