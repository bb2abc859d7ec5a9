"""A reference that remembers what it answered: case by case, so that a second grading need not compute it again.

Every case of a hidden test is seeded, so what it asks of the reference is the same from grading to grading, down to the last
bit. Where it is not (another seed, an attempt that leads a test another way), what the case asked so far is computed after
all, and everything that follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ..engine import wire
from .local import Local, same_strides
from .runner import Case


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One request as a case made it, and the reply."""

    request: wire.Request
    reply: wire.Reply

    def again(self) -> wire.Reply:
        """The reply, to be written into as one likes."""
        parts = tuple(replace(part, data=None if part.data is None else part.data.clone()) for part in self.reply.tensors)
        return replace(self.reply, tensors=parts)


@dataclass(kw_only=True)
class _Now:
    """The case that runs, and what was asked in it."""

    requests: list[wire.Request] = field(default_factory=list)
    computes: bool = False


class Remembering:
    """A Transport that answers as the one under it does, and remembers, from `begin` of a case to the next."""

    generation = 0

    def __init__(self, transport: Local) -> None:
        self._transport = transport
        self._known: dict[Case, list[_Asked]] = {}
        self._case: Case | None = None
        self._now = _Now(computes=True)
        self._keeps = False

    def begin(self, case: Case | None) -> None:
        """From now on this case asks; None is none, and then everything is computed and nothing kept."""
        self._case = case
        self._keeps = case is not None and case not in self._known
        self._now = _Now(computes=case is None or self._keeps)
        if case is not None and self._keeps:
            self._known[case] = []

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply, remembered or computed."""
        now = self._now
        if not now.computes and self._case is not None:
            known = self._known[self._case]
            place = len(now.requests)
            now.requests.append(_copied(request))  # a test may write into what it has asked with
            if place < len(known) and _same(known[place].request, request):
                return known[place].again()
            self._catch_up()
            return self._transport.ask(request)
        reply = self._transport.ask(request)
        if self._keeps and self._case is not None:
            self._known[self._case].append(_Asked(request=_copied(request), reply=reply))
            return self._known[self._case][-1].again()
        return reply

    def _catch_up(self) -> None:
        """Compute what was answered from memory, so that the modules of this case are there."""
        self._now.computes = True
        for request in self._now.requests[:-1]:
            self._transport.ask(request)


def _copied(request: wire.Request) -> wire.Request:
    return replace(request, tensors=tuple(map(same_strides, request.tensors)))


def _same(one: wire.Request, other: wire.Request) -> bool:
    return (
        one.op == other.op
        and one.fields == other.fields
        and len(one.tensors) == len(other.tensors)
        and all(map(_equal, one.tensors, other.tensors))
    )


def _equal(one: Tensor, other: Tensor) -> Any:
    return one.dtype == other.dtype and one.stride() == other.stride() and torch.equal(one, other)
