"""Steps back and forth: from a tensor to what made its numbers, and over what a product sums."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from attn_kata.properties.results import Step

NEAR = 1e-4  # of two numbers, relative: code may compute in float32
# What gives the same numbers in another layout, and a dropout in eval().
CARRIES = re.compile(
    r"(?:transpose|unsqueeze|squeeze|dropout)_?|permute|expand(?:_as)?|(?:view|reshape)(?:_as)?|contiguous|to|type(?:_as)?|"
    r"float|double|half|bfloat16|repeat|flatten|unflatten|movedim|moveaxis|swapaxes|swapdims|t|mT|adjoint|__get__|clone|"
    r"detach|cuda|cpu"
)
PRODUCTS = frozenset(("matmul", "bmm", "mm", "einsum", "__matmul__", "__rmatmul__", "baddbmm", "mv", "dot"))
TIMES = frozenset(("mul", "mul_", "multiply", "__mul__", "__rmul__", "__imul__"))
SCALES = TIMES | {"div", "div_", "divide", "true_divide", "__truediv__", "__itruediv__"}
_SUMS = frozenset(("add", "add_", "__add__", "__radd__", "__iadd__", "sub", "sub_", "__sub__", "__isub__"))
FILLS = _SUMS | {"masked_fill", "masked_fill_", "where"}


def is_softmax(step: Step) -> bool:
    """Whether a step is a softmax, of torch's or of the code's own name."""
    return "softmax" in step.operation and "log" not in step.operation and "gumbel" not in step.operation


def carried_from(steps: Sequence[Step], number: int) -> int:
    """The step whose numbers this one has, in any layout."""
    while CARRIES.fullmatch(steps[number].operation) and steps[number].sources and steps[number].sources[0] is not None:
        before = steps[number].sources[0]
        number = before if before is not None else number
    return number


def descendants(steps: Sequence[Step], numbers: Sequence[int]) -> set[int]:
    """The steps that one of these has a part in."""
    found: set[int] = set()
    for number, step in enumerate(steps):
        if any(source in numbers or source in found for source in step.sources):
            found.add(number)
    return found


def ancestors(steps: Sequence[Step], number: int) -> set[int]:
    """The steps whose numbers have a part in this one."""
    found: set[int] = set()
    waiting = [number]
    while waiting:
        one = waiting.pop()
        for source in steps[one].sources:
            if source is not None and source not in found:
                found.add(source)
                waiting.append(source)
    return found


def summed(steps: Sequence[Step], number: int, place: int) -> list[int]:
    """The dimensions of the tensor at `place`, from the last, that a product sums over; [] for none that are known."""
    step = steps[number]
    source = step.sources[place]
    rank = 0 if source is None else steps[source].value.dim()
    if step.operation == "einsum":
        return [dim for dim in _summed_by_einsum(step.pattern, place, rank) if dim >= -2 or rank < 4]
    if step.operation in PRODUCTS and rank:
        is_first = place == (1 if step.operation in ("baddbmm", "__rmatmul__") else 0)
        return [-1] if is_first or rank == 1 else [-2]
    if step.operation not in TIMES or not rank:
        return []
    for after in range(number + 1, min(number + 4, len(steps))):
        if steps[after].operation == "sum" and number in steps[after].sources:
            return [dim for dim in range(-rank, 0) if _is_sum(step.value, steps[after].value, dim)]
    return []


def _is_sum(products: Tensor, total: Tensor, dim: int) -> bool:
    if products.shape[dim] == 1:
        return False
    whole = products.sum(dim, keepdim=True)
    return whole.numel() == total.numel() and torch.allclose(whole.flatten(), total.flatten(), rtol=NEAR, atol=NEAR)


def _summed_by_einsum(pattern: str, place: int, rank: int) -> list[int]:
    inputs, arrow, output = pattern.partition("->")
    terms = inputs.split(",")
    if not arrow or place >= len(terms):
        return []
    head, dots, tail = terms[place].partition("...")
    if dots:
        return [number - len(tail) for number, letter in enumerate(tail) if letter not in output]
    return (
        [number - len(head) for number, letter in enumerate(head) if letter not in output] if len(head) == rank else []
    )


def size_of_sums(steps: Sequence[Step], product: int) -> int | None:
    """Over how many products each number of a product of matrices sums."""
    step = steps[product]
    for place, source in enumerate(step.sources):
        if source is None:
            continue
        value = steps[source].value
        if step.operation == "einsum":
            dims = _summed_by_einsum(step.pattern, place, value.dim())
            return math.prod(value.shape[dim] for dim in dims) if dims else None
        is_first = place == (1 if step.operation in ("baddbmm", "__rmatmul__") else 0)
        return value.shape[-1] if is_first or value.dim() == 1 else value.shape[-2]
    return None


def back(
    steps: Sequence[Step], number: int | None, *, stop_at_fills: bool = False
) -> tuple[int | None, float, int | None] | None:
    """From a step back to what made its numbers, without layouts, scales and masks; the factor between; and its line.

    None where several may have made them.
    """
    factor, line = 1.0, None
    while number is not None:
        step = steps[number]
        sources = [one for one in step.sources if one is not None]
        if CARRIES.fullmatch(step.operation) and step.sources:
            number = step.sources[0]
        elif step.operation in SCALES:
            alike = [one for one in sources if steps[one].value.numel() == step.value.numel()]
            ratio = _ratio(steps[alike[0]].value, step.value) if len(alike) == 1 else None
            if ratio is None:
                return (number, factor, line) if stop_at_fills and not alike else None
            factor, line, number = factor * ratio, step.line, alike[0]
        elif step.operation in FILLS and not stop_at_fills:
            alike = [one for one in sources if steps[one].value.numel() == step.value.numel()]
            if len(alike) != 1:
                return None
            number = alike[0]
        else:
            break
    return number, factor, line


def _ratio(before: Tensor, after: Tensor) -> float | None:
    """The number that all of `before` is multiplied by, or None."""
    one, other = before.reshape(-1), after.reshape(-1)
    told = one.isfinite() & other.isfinite() & (one.abs() > 1e-9)
    if not bool(told.any()):
        return None
    ratios = other[told] / one[told]
    ratio = float(ratios.median())
    return ratio if ratio > 0 and bool(((ratios - ratio).abs() <= NEAR * ratio).all()) else None


def near(one: float, other: float) -> bool:
    """Whether two numbers are equal, as code computes in float32."""
    return abs(one - other) <= 1e-3 * abs(other)


# The product that a softmax is of, the factor between them, and the line of that.
Scored = tuple[int, float, int | None]


def scored_by(steps: Sequence[Step], softmax: int) -> Scored | None:
    """Of which product a softmax is; None where it is of none."""
    seen = back(steps, steps[softmax].sources[0] if steps[softmax].sources else None)
    if seen is None or seen[0] is None or steps[seen[0]].operation not in PRODUCTS:
        return None
    return seen[0], seen[1], seen[2]
