"""What a call gives: the tensors of its result, and its opaque parts, which stay in the attempt's process."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attn_kata.properties.recording import Cost, Recording
from attn_kata.protocol import replies, wire


@dataclass(frozen=True, kw_only=True)
class Opaque:
    """A value of the attempt's own, such as a cache. It stays in the attempt's process, and may be an argument of a later call.

    kind: "tuple" or "list", or what it is instead, in words.
    items: for each item the shape and the dtype of a tensor, or one of the words "none", "bool", "number" and "other".
    `prefix`, `index` and `detached` do to each of its tensors what a caller might do.
    """

    kind: str
    items: tuple[tuple[tuple[int, ...], torch.dtype] | str, ...]
    number: int
    place: int
    operations: tuple[tuple[Any, ...], ...] = ()

    def prefix(self, count: int, *, dim: int) -> Opaque:
        """The first `count` entries along a dimension, as `tensor.narrow(dim, 0, count)` gives them: a view."""
        return self._after("prefix", dim, count)

    def index(self, places: list[int], *, dim: int) -> Opaque:
        """The entries at these places along a dimension."""
        return self._after("index", dim, tuple(places))

    def detached(self) -> Opaque:
        """Without its graph, so that gradients of a later call do not reach the call that made it."""
        return self._after("detached")

    def _after(self, *operation: Any) -> Opaque:
        return replace(self, operations=(*self.operations, operation))


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one call. What was not asked for is empty.

    output: the tensor that was returned; of several parts the first.
    parts: what was returned, by name. A single tensor is called "out".
    shares_input: whether a tensor of it shares memory with an argument.
    on_meta: whether it is on the meta device, and so has a shape and no numbers.
    inputs_after: the tensor arguments as the call left them.
    input_gradients: of the floating arguments, in order; None where no gradient arrives.
    parameter_gradients: by name; None where no gradient arrives.
    recording: which operations ran.
    cost: what they cost.
    """

    output: Tensor
    parts: dict[str, Tensor | Opaque]
    shares_input: bool
    on_meta: bool = False
    inputs_after: list[Tensor] = field(default_factory=list)
    input_gradients: list[Tensor | None] = field(default_factory=list)
    parameter_gradients: dict[str, Tensor | None] = field(default_factory=dict)
    recording: Recording | None = None
    cost: Cost | None = None

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The parts that are tensors."""
        return {name: part for name, part in self.parts.items() if isinstance(part, Tensor)}


def received(part: wire.TensorReply) -> Tensor:
    """A tensor of a reply; one without numbers is on the meta device."""
    return torch.empty(part.shape, dtype=part.dtype, device="meta") if part.data is None else part.data


def opaque(form: str, answered: list[wire.TensorReply], number: int, place: int) -> Opaque:
    """An opaque part of this form; takes the descriptions of its tensors from the front of `answered`."""
    kind, _, instead = form.partition(":")
    items: list[tuple[tuple[int, ...], torch.dtype] | str] = []
    for word in replies.form_items(form):
        tensor = answered.pop(0) if word == "tensor" else None
        items.append(word if tensor is None else (tensor.shape, tensor.dtype))
    return Opaque(kind=instead if kind == "other" else kind, items=tuple(items), number=number, place=place)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one operation of a call gave, and the line of the attempt that it is on.

    sources: the numbers of the steps that gave the tensors it took, in order; None for a tensor that no step gave.
    pattern: that of an einsum, without spaces.
    """

    line: int
    operation: str
    value: Tensor
    sources: tuple[int | None, ...] = ()
    pattern: str = ""


@dataclass(frozen=True, kw_only=True)
class Operand:
    """A tensor that an operation was given: its shape, and the step that gave it; None for a tensor that no step gave."""

    shape: tuple[int, ...]
    source: int | None


@dataclass(frozen=True, kw_only=True)
class RaisingOperation:
    """The operation that ended a call with an exception, and the line of the attempt that it is on."""

    line: int
    operation: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What the operations of a call gave, in order, and the one that raised, if one did."""

    steps: list[Step]
    raising: RaisingOperation | None = None


_STEP = re.compile(
    r"(\d{1,7}) (\S{1,40}) ((?:\d{1,7}(?:,\d{1,7}){0,7})?) ((?:\d{1,7}|-)(?:,(?:\d{1,7}|-)){0,99})(?: ([\w.,>-]{0,99}))?"
)


_RAISES = re.compile(r"(\d{1,7}) ([\w.]{1,40}) raises((?: (?:\d{1,7}|-):(?:\d{1,7}(?:,\d{1,7}){0,7})?){0,9})")


def trace(reply: wire.Reply) -> Trace:
    """What a traced call tells. What is not told as it should be ends it."""
    numbers = reply.tensors[0].data
    if numbers is None or numbers.dtype != torch.float64 or numbers.dim() != 1:
        return Trace(steps=[])
    found: list[Step] = []
    start = 0
    for text in reply.texts:
        told = _STEP.fullmatch(text)
        sizes = _sizes(told[3]) if told else ()
        end = start + math.prod(sizes)
        if told is None or end > len(numbers):
            return Trace(steps=found, raising=_raising(text, len(found)))
        sources = tuple(None if one == "-" else int(one) for one in told[4].split(","))
        if any(one is not None and one >= len(found) for one in sources):
            break
        value = numbers[start:end].reshape(sizes)
        found.append(Step(line=int(told[1]), operation=told[2], value=value, sources=sources, pattern=told[5] or ""))
        start = end
    return Trace(steps=found)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size)


def _raising(text: str, steps: int) -> RaisingOperation | None:
    told = _RAISES.fullmatch(text)
    operands = [one.split(":") for one in told[3].split()] if told else []
    if told is None or any(source != "-" and int(source) >= steps for source, _ in operands):
        return None
    return RaisingOperation(
        line=int(told[1]),
        operation=told[2],
        operands=tuple(
            Operand(shape=_sizes(sizes), source=None if source == "-" else int(source)) for source, sizes in operands
        ),
    )
