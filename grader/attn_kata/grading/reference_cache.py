"""The reference cache: the reference's answers to each case, so that a second grading does not compute them again.

Every case of a hidden test is seeded, so it makes the same requests to the reference in every grading, bit for bit. A case may
still make another request: with another seed, or when a wrong attempt leads the test another way. Then the cache computes all
requests of the case, from its first one on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attn_kata.grading.hidden_tests import Case
from attn_kata.grading.local import Local, same_strides
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Request


@dataclass(frozen=True, kw_only=True)
class _Exchange:
    """One request that a case made, and its reply."""

    request: Request
    reply: wire.Reply

    def copy_of_reply(self) -> wire.Reply:
        """A copy of the reply, which the test may write into."""
        parts = tuple(part if part.data is None else part.copied() for part in self.reply.tensors)
        return wire.Reply(status=self.reply.status, texts=self.reply.texts, tensors=parts)


@dataclass(kw_only=True)
class _CaseState:
    """The state of the current case: how many requests were answered from the cache, and whether they are computed now."""

    answered: int = 0
    computes: bool = False


class ReferenceCache:
    """A Transport that keeps the answers of the underlying one, case by case. `begin` names the case."""

    generation = 0

    def __init__(self, transport: Local) -> None:
        self._transport = transport
        self._known: dict[Case, list[_Exchange]] = {}
        self._case: Case | None = None
        self._state = _CaseState(computes=True)
        self._keeps = False

    def begin(self, case: Case | None) -> None:
        """From now on, requests belong to this case. With None, everything is computed and nothing is kept."""
        self._case = case
        self._keeps = case is not None and case not in self._known
        self._state = _CaseState(computes=case is None or self._keeps)
        if case is not None and self._keeps:
            self._known[case] = []

    def ask(self, request: Request) -> wire.Reply:
        """The reply, cached or computed."""
        state = self._state
        if not state.computes and self._case is not None:
            known = self._known[self._case]
            if state.answered < len(known) and _same(known[state.answered].request, request):
                state.answered += 1
                return known[state.answered - 1].copy_of_reply()
            self._compute_skipped(known[: state.answered])
            return self._transport.ask(request)
        reply = self._transport.ask(request)
        if self._keeps and self._case is not None:
            self._known[self._case].append(_Exchange(request=_copied(request), reply=reply))
            return self._known[self._case][-1].copy_of_reply()
        return reply

    def block(self, words: tuple[str, ...]) -> None:
        """Do nothing: no operation is blocked for the reference."""

    def _compute_skipped(self, skipped: list[_Exchange]) -> None:
        """Compute the requests that were answered from the cache, so that the modules of this case exist."""
        self._state.computes = True
        for exchange in skipped:
            self._transport.ask(exchange.request)


def _copied(request: Request) -> Request:
    """A copy whose tensors the test cannot write into."""
    return replace(request, tensors=tuple(map(same_strides, request.tensors)))


def _same(one: Request, other: Request) -> bool:
    return one == other and len(one.tensors) == len(other.tensors) and all(map(_equal, one.tensors, other.tensors))


def _equal(one: Tensor, other: Tensor) -> Any:
    return one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other)
