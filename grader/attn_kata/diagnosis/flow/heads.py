"""Whether heads differ."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, allclose

from attn_kata.diagnosis.flow.follow import NEAR
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.properties.results import Step

_LEAST_SPREAD = 1e-3  # of numbers that could differ


def _are_same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and _differs(one) and bool(allclose(one, other, rtol=NEAR, atol=NEAR))


def _differs(one: Tensor) -> bool:
    """Whether its numbers are not all equal, so that two of its kind could differ."""
    return one.numel() > 1 and float(one.std()) > _LEAST_SPREAD


def look(steps: Sequence[Step], softmaxes: list[int], found: Flow) -> None:
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
