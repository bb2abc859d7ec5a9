"""A Transport that asks under limits: the attempt gets masks that it can take, the reference what the attempt hides itself."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attn_kata.properties.handle import Transport
from attn_kata.protocol import wire
from attn_kata.protocol.messages import AS_GIVEN, Argument, Build, Call, LoadWeights, Request
from attn_kata.readings.asking.limits import Limits, kept_queries, of_kept


class Limited:
    """A Transport that asks under limits. `attempt` says for which of the two sides."""

    def __init__(self, transport: Transport, limits: Limits, *, attempt: bool) -> None:
        self._transport, self._attempt = transport, attempt
        self._plain, self._masked = limits, limits.of_masked_function()
        self._names: dict[int, tuple[str, ...]] = {}  # of each module's parameters
        self._heads: dict[int, int] = {}  # of each module

    @property
    def generation(self) -> int:
        return self._transport.generation

    def block(self, words: tuple[str, ...]) -> None:
        """Block these operations in the underlying transport."""
        self._transport.block(words)

    def ask(self, request: Request) -> wire.Reply:
        """The reply to the request under the limits."""
        if isinstance(request, Build):
            self._heads[request.module] = self._plain.heads(tuple(value for _, value in request.args))
        request = self._with_parameters(request)
        if not isinstance(request, Call):
            reply = self._transport.ask(request)
            if isinstance(request, Build):
                as_given = reply.texts == (AS_GIVEN,) and not reply.tensors
                self._names[request.module] = tuple(sorted(request.weights if as_given else reply.texts))
            return reply
        return self._without_lacking(request, self._ask(request))

    def _ask(self, request: Call) -> wire.Reply:
        if request.name == self._plain.contract.builder:
            return self._transport.ask(request)
        limits = self._masked if request.name == self._masked.contract.entry else self._plain
        if limits.place is None:
            if limits.fixes_base and request.name == limits.contract.entry:
                request = replace(request, args=request.args[:2])
            return self._transport.ask(request)
        if self._attempt:
            return self._of_attempt(request, limits, limits.place)
        kept = self._kept_queries(request, limits, limits.place)
        reply = _with_kept_alone(self._transport.ask(_of_reference(_unasked(request, kept), limits)), kept)
        if limits.without_weights and reply.status == wire.OK and reply.tensors[1].data is not None:
            none = replace(reply.tensors[1], data=torch.zeros_like(reply.tensors[1].data))
            reply = replace(reply, tensors=(reply.tensors[0], none, *reply.tensors[2:]))
        return reply

    @property
    def _lacking(self) -> frozenset[str]:
        """The parameters that the code does not have as the contract has them."""
        return self._plain.zeroed | self._plain.shared | self._plain.slices | self._plain.as_they_are

    def _with_parameters(self, request: Request) -> Request:
        """The request with the parameters that the code can have."""
        if not isinstance(request, (Build, LoadWeights, Call)) or not self._lacking & set(request.weights):
            return request
        start = len(request.tensors) - len(request.weights)
        heads = self._heads.get(request.module or 0, 1)
        given = dict(zip(request.weights, request.tensors[start:], strict=True))
        return replace(request, tensors=(*request.tensors[:start], *self._plain.parameters(given, heads).values()))

    def _without_lacking(self, request: Call, reply: wire.Reply) -> wire.Reply:
        """The reply without the gradients of the parameters that the code lacks."""
        lacking = self._lacking
        differentiated = bool(request.cotangents) or request.labels is not None
        if not lacking or not differentiated or request.module is None or reply.status != wire.OK:
            return reply
        names = self._names.get(request.module, ())
        start = len(reply.tensors) - len(names)
        parts = [
            replace(part, data=None) if name in lacking else part
            for name, part in zip(names, reply.tensors[start:], strict=True)
        ]
        return replace(reply, tensors=(*reply.tensors[:start], *parts))

    @staticmethod
    def _kept_queries(request: Call, limits: Limits, place: int) -> Tensor | None:
        """The queries (T,) or (B, T) that the mask of a call keeps, where it is one for queries and keys; or None."""
        if not limits.reading.hides_queries or len(request.args) <= place or request.args[place][0] != "tensor":
            return None
        mask = request.tensors[request.args[place][1]]
        return kept_queries(limits.narrowed(mask)) if mask.dim() > 1 else None

    def _of_attempt(self, request: Call, limits: Limits, place: int) -> wire.Reply:
        if len(request.args) <= place or limits.reading.mask == "none":
            return self._transport.ask(request)
        kind, index = request.args[place]
        if kind != "tensor":
            return self._transport.ask(request)
        given = request.tensors[index]
        narrowed = limits.narrowed(given)
        kept = self._kept_queries(request, limits, place)
        tensors = (*request.tensors[:index], narrowed, *request.tensors[index + 1 :])
        reply = _with_kept_alone(self._transport.ask(_unasked(replace(request, tensors=tensors), kept)), kept)
        if request.inputs_after and reply.status == wire.OK:
            reply = _with_given(reply, max(1, len(request.returns)) + index, narrowed, given)
        return reply


def _of_reference(request: Call, limits: Limits) -> Call:
    args = tuple(request.tensors[value] if kind == "tensor" else value for kind, value in request.args)
    if not args:
        return request
    limited = limits.of_reference(args)
    described: list[Argument] = []
    tensors = list(request.tensors)
    for number, value in enumerate(limited):
        if not isinstance(value, Tensor):
            described.append(("value", value))
        elif number < len(request.args) and request.args[number][0] == "tensor":
            tensors[request.args[number][1]] = value
            described.append(request.args[number])
        else:  # the mask that the code makes: after the arguments, and before the weights
            at = len(tensors) - len(request.weights)
            tensors.insert(at, value)
            described.append(("tensor", at))
    return replace(request, args=tuple(described), tensors=tuple(tensors))


def _unasked(request: Call, kept: Tensor | None) -> Call:
    """The request with 0 for the cotangents of the queries that a mask hides."""
    if kept is None:
        return request
    tensors = list(request.tensors)
    for index in (one for one in request.cotangents if one is not None):
        tensors[index] = tensors[index] * kept[..., None]
    return replace(request, tensors=tuple(tensors))


def _with_kept_alone(reply: wire.Reply, kept: Tensor | None) -> wire.Reply:
    """The reply without what the queries get that a mask hides, which is nobody's to say."""
    if kept is None or reply.status != wire.OK:
        return reply
    out = reply.tensors[0].data
    if out is None or out.dim() != 3 or out.shape[1] != kept.shape[-1] or not out.is_floating_point():
        return reply
    return replace(reply, tensors=(replace(reply.tensors[0], data=of_kept(out, kept)), *reply.tensors[1:]))


def _with_given(reply: wire.Reply, place: int, narrowed: Tensor, given: Tensor) -> wire.Reply:
    """The reply with the mask that the test gave, where the call left the narrowed one as it was."""
    after = reply.tensors[place].data if len(reply.tensors) > place else None
    if after is None or after.shape != narrowed.shape or not torch.equal(after, narrowed):
        return reply
    same = replace(reply.tensors[place], data=given)
    return replace(reply, tensors=(*reply.tensors[:place], same, *reply.tensors[place + 1 :]))
