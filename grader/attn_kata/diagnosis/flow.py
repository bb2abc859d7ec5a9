"""Mistakes that the operations of a call show by themselves, whatever the code is meant to be and however it is called.

What a softmax makes sum to one must be what is summed over; scores of D products are divided by the root of D; a view must not
mix two dimensions. None of this needs the right numbers, so it can be asked of code that has no reading.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attn_kata.properties.results import Step

NEAR = 1e-4  # of two numbers, relative: code may compute in float32
# What gives the same numbers in another layout, and a dropout in eval().
_CARRIES = re.compile(
    r"(?:transpose|unsqueeze|squeeze|dropout)_?|permute|expand(?:_as)?|(?:view|reshape)(?:_as)?|contiguous|to|type(?:_as)?|"
    r"float|double|half|bfloat16|repeat|flatten|unflatten|movedim|moveaxis|swapaxes|swapdims|t|mT|adjoint|__get__|clone|"
    r"detach|cuda|cpu"
)
_PRODUCTS = frozenset(("matmul", "bmm", "mm", "einsum", "__matmul__", "__rmatmul__", "baddbmm", "mv", "dot"))
_TIMES = frozenset(("mul", "mul_", "multiply", "__mul__", "__rmul__", "__imul__"))
_SCALES = _TIMES | {"div", "div_", "divide", "true_divide", "__truediv__", "__itruediv__"}
_SUMS = frozenset(("add", "add_", "__add__", "__radd__", "__iadd__", "sub", "sub_", "__sub__", "__isub__"))
_FILLS = _SUMS | {"masked_fill", "masked_fill_", "where"}
_VIEWS = frozenset(("view", "reshape", "view_as", "unflatten", "flatten"))


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A mistake, and the line that makes it."""

    id: str
    line: int


@dataclass(kw_only=True)
class Flow:
    """What the operations of one call show: mistakes, and lines that are right, each as (what it does, line).

    A call with one token may show neither: there is nothing to mix, or to divide by.
    """

    mistakes: list[Shown] = field(default_factory=list)
    right: set[tuple[str, int]] = field(default_factory=set)

    def denies(self, one: Shown) -> bool:
        """Whether this call shows that the line of a mistake that another call shows does right."""
        return (_DOES.get(one.id, one.id.partition(".")[0]), one.line) in self.right


_DOES = {"split.no_transpose": "view", "merge.no_transpose": "view", "layout.mixed_places": "view"}


def of(steps: Sequence[Step], width: int | None = None) -> Flow:
    """What these steps show. `width`: that of all heads together, where it is known."""
    softmaxes = [number for number, step in enumerate(steps) if _is_softmax(step)]
    found = Flow()
    with contextlib.suppress(IndexError, RuntimeError):  # steps that do not fit: the attempt's process says them
        for number in softmaxes:
            _look_at_axis(steps, number, found)
        for number in softmaxes:
            _look_at_scale(steps, number, width, found)
        _look_at_views(steps, softmaxes, found)
    found.mistakes = list({one.line: one for one in reversed(found.mistakes)}.values())[::-1]
    return found


def is_stretched(steps: Sequence[Step]) -> bool:
    """Whether a mask gives scores more dimensions than they have, as one of a shape that the code is not meant for does."""
    return any(
        step.operation in _FILLS and source is not None and step.value.dim() > max(2, steps[source].value.dim())
        for step in steps
        for source in step.sources[:1]
    )


def has_mixed(steps: Sequence[Step]) -> bool:
    """Whether something is multiplied or summed after a softmax."""
    first = next((number for number, step in enumerate(steps) if _is_softmax(step)), len(steps))
    return any(step.operation in _PRODUCTS or step.operation == "sum" for step in steps[first:])


def _is_softmax(step: Step) -> bool:
    return "softmax" in step.operation and "log" not in step.operation and "gumbel" not in step.operation


def _look_at_axis(steps: Sequence[Step], softmax: int, found: Flow) -> None:
    """A softmax whose sums of one are along another dimension than the one that its product sums over."""
    for number in range(softmax + 1, len(steps)):
        for place, source in enumerate(steps[number].sources):
            if source is None or _carried_from(steps, source) != softmax:
                continue
            dims = _summed(steps, number, place)
            weights = steps[source].value
            dims = [dim for dim in dims if weights.shape[dim] > 1]
            ones = [dim for dim in range(-weights.dim(), 0) if weights.shape[dim] > 1 and _sums_to_one(weights, dim)]
            line = steps[softmax].line
            if set(dims) & set(ones):
                found.right.add(("softmax", line))
            elif dims and ones:
                is_query = steps[number].operation in _PRODUCTS and ones == [-1 if dims == [-2] else -2]
                found.mistakes.append(Shown(id="softmax.query_axis" if is_query else "softmax.head_axis", line=line))


def _sums_to_one(weights: Tensor, dim: int) -> bool:
    return bool(((weights.sum(dim) - 1).abs() <= NEAR).all()) and bool((weights >= 0).all())


def _carried_from(steps: Sequence[Step], number: int) -> int:
    """The step whose numbers this one has, in any layout."""
    while (
        _CARRIES.fullmatch(steps[number].operation) and steps[number].sources and steps[number].sources[0] is not None
    ):
        before = steps[number].sources[0]
        number = before if before is not None else number
    return number


def _summed(steps: Sequence[Step], number: int, place: int) -> list[int]:
    """The dimensions of the tensor at `place`, from the last, that a product sums over; [] for none that are known."""
    step = steps[number]
    source = step.sources[place]
    rank = 0 if source is None else steps[source].value.dim()
    if step.operation == "einsum":
        return [dim for dim in _summed_by_einsum(step.pattern, place, rank) if dim >= -2 or rank < 4]
    if step.operation in _PRODUCTS and rank:
        is_first = place == (1 if step.operation in ("baddbmm", "__rmatmul__") else 0)
        return [-1] if is_first or rank == 1 else [-2]
    if step.operation not in _TIMES or not rank:
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


def _look_at_scale(steps: Sequence[Step], softmax: int, width: int | None, found: Flow) -> None:
    """Scores that are scaled by the root of a size that is not that of their sums."""
    scaled = _scores(steps, softmax)
    if scaled is None:
        return
    product, factor, line = scaled
    step = steps[product]
    summed = _size_of_sums(steps, product)
    if summed is None or summed < 2 or line is None or step.value.dim() < 2:
        return
    size = 1 / factor**2  # the size whose root they are divided by
    if _near(size, summed) or _near(size, 1):
        found.right.add(("scale", line))
        return
    shape = step.value.shape
    heads = [shape[1]] if step.value.dim() == 4 else [n for n in range(2, 17) if shape[0] % n == 0]
    whole = {summed * each for each in heads if each > 1} | ({width} if width else set())
    if any(_near(size, one) for one in whole if one != summed):
        found.mistakes.append(Shown(id="scale.embed_dim", line=line))
    elif step.value.dim() == 4 and _near(size, shape[1]):
        found.mistakes.append(Shown(id="scale.heads", line=line))
    elif _near(size, shape[-1]):
        found.mistakes.append(Shown(id="scale.key_length", line=line))
    elif _near(1 / size, summed):
        found.mistakes.append(Shown(id="scale.inverted", line=line))
    elif _near(size, summed**2):
        found.mistakes.append(Shown(id="scale.no_sqrt", line=line))


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-3 * abs(other)


def _scores(steps: Sequence[Step], softmax: int) -> tuple[int, float, int | None] | None:
    """The product that a softmax is of, the factor of it and of what it multiplies, and the line of that.

    None where it is not seen.
    """
    seen = _back(steps, steps[softmax].sources[0] if steps[softmax].sources else None)
    if seen is None:
        return None
    number, factor, line = seen
    if number is None or steps[number].operation not in _PRODUCTS:
        return None
    is_made = False
    for source in steps[number].sources:
        before = _back(steps, source, stop_at_fills=True)
        if before is None:
            return None
        is_made = is_made or before[0] is not None
        factor *= before[1]
        line = line if before[2] is None else before[2]
    return (number, factor, line) if is_made else None  # of what it is given, nothing says how wide a head is


def _back(
    steps: Sequence[Step], number: int | None, *, stop_at_fills: bool = False
) -> tuple[int | None, float, int | None] | None:
    """From a step back to what made its numbers, without layouts, scales and masks; the factor between; and its line.

    None where several may have made them.
    """
    factor, line = 1.0, None
    while number is not None:
        step = steps[number]
        sources = [one for one in step.sources if one is not None]
        if _CARRIES.fullmatch(step.operation) and step.sources:
            number = step.sources[0]
        elif step.operation in _SCALES:
            alike = [one for one in sources if steps[one].value.numel() == step.value.numel()]
            ratio = _ratio(steps[alike[0]].value, step.value) if len(alike) == 1 else None
            if ratio is None:
                return (number, factor, line) if stop_at_fills and not alike else None
            factor, line, number = factor * ratio, step.line, alike[0]
        elif step.operation in _FILLS and not stop_at_fills:
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


def _size_of_sums(steps: Sequence[Step], product: int) -> int | None:
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


def _look_at_views(steps: Sequence[Step], softmaxes: list[int], found: Flow) -> None:
    """A view that mixes two dimensions, before a softmax of its numbers or of what comes of one."""
    before = {number for one in softmaxes for number in _ancestors(steps, one)}
    after = [number for number in range(len(steps)) if _ancestors(steps, number) & set(softmaxes)]
    for number, step in enumerate(steps):
        source = step.sources[0] if step.sources else None
        if step.operation not in _VIEWS or source is None or (number not in before and number not in after):
            continue
        sizes, given = _plain(step.value.shape), _plain(steps[source].value.shape)
        if _mixes(given, sizes):
            of_images = len(given) != len(sizes) and (number in before) == (len(sizes) < len(given))
            id = "split.no_transpose" if number in before else "merge.no_transpose"
            id = "layout.mixed_places" if of_images else id
            found.mistakes.append(Shown(id=id, line=step.line))
        elif len(sizes) == step.value.dim() and len(given) == steps[source].value.dim():  # no dimension of one
            found.right.add(("view", step.line))


def _plain(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size > 1]


def _mixes(given: list[int], sizes: list[int]) -> bool:
    """Whether no dimension of one is a product of dimensions, or parts of them, that lie side by side in the other."""
    ends = sorted({math.prod(one[:place]) for one in (given, sizes) for place in range(1, len(one) + 1)})
    if all(larger % smaller == 0 for smaller, larger in itertools.pairwise(ends)):
        return False
    # A table of distances is shifted by a view of (T, T + 1) as (T + 1, T).
    pairs = [
        (given[place : place + 2], sizes[place - len(given) : place - len(given) + 2 or None])
        for place in range(len(given) - 1)
    ]
    return not any(one == other[::-1] and abs(one[0] - one[1]) == 1 for one, other in pairs)


def _ancestors(steps: Sequence[Step], number: int) -> set[int]:
    found: set[int] = set()
    waiting = [number]
    while waiting:
        one = waiting.pop()
        for source in steps[one].sources:
            if source is not None and source not in found:
                found.add(source)
                waiting.append(source)
    return found
