"""Prefetch: the requests that each case of the hidden tests makes of a right attempt, so that they can be sent ahead.

The attempt then computes while the grading compares. Every case is seeded, so it makes the same requests in every grading, bit
for bit, as long as the answers are right. A wrong answer may lead the test to other requests. Then the prefetched replies are
discarded. A request made from earlier answers cannot be prefetched. Nothing after a block is prefetched either.
"""

from __future__ import annotations

import itertools

from attn_kata.grading.hidden_tests import Case
from attn_kata.properties.handle import Transport
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Call, Request


class Prefetch:
    """A Transport that passes every request on, and records the requests of each case."""

    generation = 0

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._cases: dict[Case, int] = {}  # the place of each case in the order of the run
        self._questions: list[list[bytes]] = []
        self._current: Case | None = None  # the case whose requests are being recorded
        self._incomplete: set[Case] = set()

    def begin(self, case: Case | None) -> None:
        """From now on, requests belong to this case. With None, nothing is recorded."""
        self._current = None if case in self._cases else case
        if self._current is not None:
            self._cases[self._current] = len(self._questions)
            self._questions.append([])

    def requests_from(self, case: Case | None) -> list[bytes]:
        """The requests of this case and the next, as far as they can be prefetched. None for a case that was not recorded."""
        place = None if case is None else self._cases.get(case)
        if place is None:
            return []
        return [*itertools.chain(*self._questions[place : place + (1 if case in self._incomplete else 2)])]

    def ask(self, request: Request) -> wire.Reply:
        """The reply of the underlying transport."""
        if isinstance(request, Call) and request.of_answers:
            self._stop_recording()
        if self._current is not None:
            self._questions[-1].append(wire.encode_question(request))
        return self._transport.ask(request)

    def block(self, words: tuple[str, ...]) -> None:
        """Do not block anything here, but stop recording: a request after a block must not be sent before it."""
        self._stop_recording()

    def _stop_recording(self) -> None:
        if self._current is not None:
            self._incomplete.add(self._current)
            self._current = None
