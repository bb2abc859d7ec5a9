"""Prefetch: what the hidden tests will ask of a right attempt, case by case, so that it can be asked ahead.

An attempt then answers while the grading compares. Every case is seeded, so its requests are the same from grading to grading,
bit for bit, as long as the answers are right. Where they are not, the test asks something else, and what was asked ahead is
dropped. Requests that are made of answers cannot be asked ahead, and nothing after a block is.
"""

from __future__ import annotations

import itertools

from attn_kata.grading.hidden_tests import Case
from attn_kata.properties.handle import Transport
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Call, Request


class Prefetch:
    """A Transport that answers as the one under it does, and notes what each case asks."""

    generation = 0

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cases: dict[Case, int] = {}  # their places in the order in which they were run
        self._questions: list[list[bytes]] = []
        self._now: Case | None = None  # the case whose requests are noted
        self._cut_short: set[Case] = set()

    def begin(self, case: Case | None) -> None:
        """From now on this case asks; None is none, and then nothing is noted."""
        self._now = None if case in self._cases else case
        if self._now is not None:
            self._cases[self._now] = len(self._questions)
            self._questions.append([])

    def after(self, case: Case | None) -> list[bytes]:
        """What is asked in this case and the next, as far as it can be asked ahead; nothing for a case that was not noted."""
        place = None if case is None else self._cases.get(case)
        if place is None:
            return []
        return [*itertools.chain(*self._questions[place : place + (1 if case in self._cut_short else 2)])]

    def ask(self, request: Request) -> wire.Reply:
        """The reply of the one under it."""
        if isinstance(request, Call) and request.of_answers:
            self._stop_noting()
        if self._now is not None:
            self._questions[-1].append(wire.encode_question(request))
        return self._transport.ask(request)

    def block(self, words: tuple[str, ...]) -> None:
        """Nothing is blocked here; what comes after a block cannot be asked before it."""
        self._stop_noting()

    def _stop_noting(self) -> None:
        if self._now is not None:
            self._cut_short.add(self._now)
            self._now = None
