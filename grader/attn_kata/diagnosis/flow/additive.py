"""A learned score of a query beside a key that is linear in both: the query adds the same number to the score of every key."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from attn_kata.diagnosis.flow.follow import NEAR, back, carried_from
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.properties.results import Step

_JOINS = frozenset(("cat", "concat", "concatenate", "add", "__add__", "__radd__", "__iadd__", "add_"))


def look(steps: Sequence[Step], softmax: int, found: Flow) -> None:
    """A softmax of one number for each key, that a layer makes of a sum or a join of both, with nothing between."""
    seen = back(steps, steps[softmax].sources[0] if steps[softmax].sources else None)
    if seen is None or seen[0] is None or steps[seen[0]].operation != "linear" or steps[seen[0]].value.shape[-1] != 1:
        return
    scored = steps[seen[0]]
    taken = None if scored.sources[0] is None else carried_from(steps, scored.sources[0])
    if taken is None or steps[taken].operation not in _JOINS:
        return
    joined = steps[taken]
    if "add" not in joined.operation:
        parts = list(joined.value.unbind(-1))
    else:
        parts = [steps[one].value for one in joined.sources if one is not None]
    whole = joined.value.shape
    for dim in range(joined.value.dim() - 1):
        if whole[dim] < 2:
            continue
        alike = [_is_alike(part, dim - len(whole), in_full="add" in joined.operation) for part in parts]
        if any(alike) and not all(alike):
            found.makes("additive.no_tanh", scored.line)
            return


def _is_alike(part: Tensor, dim: int, *, in_full: bool) -> bool:
    """Whether a part has the same numbers in all places of a dimension, counted from the last of the whole."""
    place = dim if in_full else dim + 1  # a column lacks the last one
    if part.dim() < -place or part.shape[place] == 1:
        return True
    return bool(((part - part.narrow(place, 0, 1)).abs() <= NEAR).all())
