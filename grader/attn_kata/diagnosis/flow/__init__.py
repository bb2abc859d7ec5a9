"""Mistakes that the operations of a call show by themselves, whatever the code is meant to be and however it is called.

What a softmax makes sum to one must be what is summed over; scores that sum D products are divided by the root of D; a view
must not mix two dimensions; heads must differ. None of this needs the right numbers, so it can be asked of code that has no
reading.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from attn_kata.diagnosis.flow import additive, heads, scales, softmaxes, views
from attn_kata.diagnosis.flow.follow import FILLS, PRODUCTS, back, is_softmax, scored_by
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.properties.results import Step

MOST_SOFTMAXES = 16  # that are followed; a decoder makes one for each token, all alike


def of(steps: Sequence[Step], width: int | None = None) -> Flow:
    """What these steps show. `width`: that of all heads together, where it is known."""
    found = Flow()
    # Steps that do not fit, and numbers without a square: the attempt's process says them.
    with contextlib.suppress(IndexError, RuntimeError, ArithmeticError):
        every = [number for number, step in enumerate(steps) if is_softmax(step)][:MOST_SOFTMAXES]
        scored = {number: scored_by(steps, number) for number in every}
        for number in every:
            softmaxes.look(steps, number, scored, found)
            scales.look(steps, scored[number], width, found)
            additive.look(steps, number, found)
        heads.look(steps, every, found)
        views.look(steps, every, found)
    found.mistakes = list({(one.id, one.line): one for one in found.mistakes}.values())
    return found


def has_mixed(steps: Sequence[Step]) -> bool:
    """Whether something is multiplied or summed after a softmax."""
    first = next((number for number, step in enumerate(steps) if is_softmax(step)), len(steps))
    return any(step.operation in PRODUCTS or step.operation == "sum" for step in steps[first:])


def is_stretched(steps: Sequence[Step]) -> bool:
    """Whether a mask gives scores more numbers than they have, as one of a shape that the code is not meant for does."""
    for step in steps:
        known = [one for one in step.sources if one is not None]
        if step.operation not in FILLS or len(known) != 1 or step.value.numel() == steps[known[0]].value.numel():
            continue
        seen = back(steps, known[0])
        if seen is not None and seen[0] is not None and steps[seen[0]].operation in PRODUCTS:
            return True
    return False
