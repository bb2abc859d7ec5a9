"""Which layers make queries, keys and values, and whether heads differ."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, allclose

from attn_kata.diagnosis.flow.follow import NEAR, PRODUCTS, back, carried_from, scored_by
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.properties.results import Step

_LAYERS = frozenset(("linear", "conv1d", "conv2d", "addmm"))
_LEAST_SPREAD = 1e-3  # of numbers that could differ


def look(steps: Sequence[Step], softmax: int, found: Flow) -> None:
    """Queries and keys, or keys and values, that one and the same layer gives."""
    scored = scored_by(steps, softmax)
    product = None if scored is None else steps[scored[0]]
    sides = [] if product is None else [_made_by(steps, source) for source in product.sources[-2:]]
    if product is None or len(sides) != 2 or sides[0] is None or sides[1] is None:
        return
    if _are_same(steps[sides[0]].value, steps[sides[1]].value):
        found.makes("project.query_for_key", product.line)
        return
    found.right.add(("project.query_for_key", product.line))
    for step in steps[softmax + 1 :]:
        operands = step.sources[-2:]
        for place, source in enumerate(operands):
            if step.operation not in PRODUCTS or source is None or carried_from(steps, source) != softmax:
                continue
            values = _made_by(steps, operands[1 - place]) if len(operands) == 2 else None
            if values is None:
                continue
            if any(_are_same(steps[values].value, steps[side].value) for side in sides if side is not None):
                found.makes("project.key_for_value", step.line)
            else:
                found.right.add(("project.key_for_value", step.line))


def _made_by(steps: Sequence[Step], number: int | None) -> int | None:
    """The layer that gives the numbers of this step, in another layout or scaled; None where it is none."""
    seen = back(steps, number, stop_at_fills=True)
    made = None if seen is None else seen[0]
    return made if made is not None and steps[made].operation in _LAYERS else None


def _are_same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and _differs(one) and bool(allclose(one, other, rtol=NEAR, atol=NEAR))


def _differs(one: Tensor) -> bool:
    """Whether its numbers are not all equal, so that two of its kind could differ."""
    return one.numel() > 1 and float(one.std()) > _LEAST_SPREAD


def look_at_heads(steps: Sequence[Step], softmaxes: list[int], found: Flow) -> None:
    """Heads that all have the same weights: in one tensor (B, H, Tq, Tk), or one after the other in one line."""
    by_line: dict[int, list[Tensor]] = {}
    for number in softmaxes:
        value = steps[number].value
        if value.dim() == 4 and 1 not in value.shape:
            by_line.setdefault(steps[number].line, []).extend(value.unbind(1))
        elif value.dim() == 3 and 1 not in value.shape:
            by_line.setdefault(steps[number].line, []).append(value)
    for line, heads in by_line.items():
        if len(heads) < 2 or not _differs(heads[0]):
            continue
        if all(_are_same(heads[0], one) for one in heads[1:]):
            found.makes("module.repeated", line)
        else:
            found.right.add(("module", line))
