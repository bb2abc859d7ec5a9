"""Along what a softmax is, and what is done to the scores before it and to the weights after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from attn_kata.diagnosis.flow.follow import (
    CARRIES,
    FILLS,
    NEAR,
    PRODUCTS,
    SCALES,
    Scored,
    back,
    carried_from,
    is_softmax,
    near,
    size_of_sums,
    summed,
)
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.properties.results import Step

_MOST_HEADS = 16


def look(steps: Sequence[Step], softmax: int, every: Mapping[int, Scored | None], found: Flow) -> None:
    """Look at one softmax. `every`: of which product each softmax is."""
    scored = every[softmax]
    # Two of the same scores: attention in two directions, or slots that compete for tokens.
    if scored is None or sum(one is not None and one[0] == scored[0] for one in every.values()) == 1:
        _look_along(steps, softmax, found)
    _look_before(steps, softmax, found)
    if scored is not None:  # that of the queries of linear attention may be scaled
        _look_after(steps, softmax, size_of_sums(steps, scored[0]), found)


def _look_along(steps: Sequence[Step], softmax: int, found: Flow) -> None:
    """A softmax whose sums of one are along another dimension than the one that its product sums over."""
    for number, place, source in _taken(steps, softmax):
        if carried_from(steps, source) != softmax or _of_two(steps, number):
            continue
        weights = steps[source].value
        dims = [dim for dim in summed(steps, number, place) if weights.shape[dim] > 1]
        ones = [dim for dim in range(-weights.dim(), 0) if weights.shape[dim] > 1 and _sums_to_one(weights, dim)]
        line = steps[softmax].line
        if set(dims) & set(ones):
            found.right.add(("softmax", line))
        elif dims and ones:
            is_query = steps[number].operation in PRODUCTS and ones == [-1 if dims == [-2] else -2]
            found.makes("softmax.query_axis" if is_query else "softmax.head_axis", line)


def _taken(steps: Sequence[Step], softmax: int) -> Iterator[tuple[int, int, int]]:
    """Each step after a softmax with each place in it that a step has made, and that step."""
    for number in range(softmax + 1, len(steps)):
        for place, source in enumerate(steps[number].sources):
            if source is not None:
                yield number, place, source


def _of_two(steps: Sequence[Step], number: int) -> bool:
    """Whether a product is of two softmaxes, so that one of them is what is mixed: a mixture of softmaxes, two directions."""
    made = [carried_from(steps, source) for source in steps[number].sources if source is not None]
    return sum(is_softmax(steps[one]) for one in made) > 1


def _sums_to_one(weights: Tensor, dim: int) -> bool:
    return bool(((weights.sum(dim) - 1).abs() <= NEAR).all()) and bool((weights >= 0).all())


def _look_before(steps: Sequence[Step], softmax: int, found: Flow) -> None:
    """A dropout of the scores, or a softmax of them."""
    number = steps[softmax].sources[0] if steps[softmax].sources else None
    while number is not None:
        step = steps[number]
        if is_softmax(step):
            found.makes("softmax.twice", steps[softmax].line)
            return
        if "dropout" in step.operation:
            found.makes("dropout.before_softmax", step.line)
        alike = [one for one in step.sources if one is not None and steps[one].value.numel() == step.value.numel()]
        goes_on = CARRIES.fullmatch(step.operation) or step.operation in SCALES | FILLS
        number = alike[0] if goes_on and len(alike) == 1 else None


def _look_after(steps: Sequence[Step], softmax: int, size: int | None, found: Flow) -> None:
    """Weights that are divided by the root of the size of a head, or of several, before they mix anything."""
    for number, place, source in _taken(steps, softmax):
        if not summed(steps, number, place):
            continue
        seen = back(steps, source, stop_at_fills=True)
        if seen is None or seen[0] != softmax or seen[2] is None or size is None:
            continue
        if any(near(1 / seen[1] ** 2, size * heads) for heads in range(1, _MOST_HEADS + 1)):
            found.makes("scale.after_softmax", seen[2])
