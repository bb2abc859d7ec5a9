"""Opaque parts of a result: a cache, or what a backward pass needs. They stay in this process, and come back as arguments.

The grading knows such a value by its number, and sees only its form: how many items it has, and the shapes of its tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_kata.attempt.results import BadResult, describe_type
from attn_kata.protocol import wire

MOST_ITEMS = 64

# What the grading may do with the tensors of an opaque part before it comes back, as a caller of the function may.
_OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "prefix": lambda tensor, dim, count: tensor.narrow(dim, 0, count),
    "index": lambda tensor, dim, places: tensor.index_select(dim, torch.tensor(places)),
    "detached": lambda tensor: tensor.detach(),
}


class OpaqueParts:
    """The opaque parts that calls have returned, by the number of the call and the place of the part."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, int], Any] = {}

    def keep(self, number: int, values: list[Any]) -> None:
        """Keep the opaque parts of one call."""
        self._values.update({(number, place): value for place, value in enumerate(values)})

    def recall(self, described: tuple[int, int, tuple[tuple[Any, ...], ...]]) -> Any:
        """The value itself, or a value of its kind with these operations done to each tensor. Raises BadResult."""
        number, place, operations = described
        value = self._values[number, place]
        for operation in operations:
            value = _each(value, operation)
        return value


def _each(value: Any, operation: tuple[Any, ...]) -> Any:
    name, *how = operation
    if not isinstance(value, (tuple, list)):
        raise BadResult(f"returned {describe_type(value)} where the contract asks for a tuple of tensors")
    try:
        changed = [_OPERATIONS[name](item, *how) if isinstance(item, Tensor) else item for item in value]
    except (RuntimeError, IndexError):
        shapes = ", ".join(str(tuple(item.shape)) for item in value if isinstance(item, Tensor))
        raise BadResult(f"returned tensors of shapes {shapes}, and {name}{tuple(how)} fails on them") from None
    if hasattr(value, "_fields"):  # a namedtuple
        return type(value)(*changed)
    return changed if isinstance(value, list) else tuple(changed)


def form(value: Any) -> str:
    """The form of an opaque part in one text, as `replies.form_items` reads it."""
    if not isinstance(value, (tuple, list)) or len(value) > MOST_ITEMS:
        return f"other:{describe_type(value)}"
    return f"{'list' if isinstance(value, list) else 'tuple'}:{','.join(map(_word, value))}"


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors that `form` counts, in order."""
    if form(value).startswith("other:"):
        return []
    return [item.detach() for item in value if _word(item) == "tensor"]


def _word(item: Any) -> str:
    if item is None:
        return "none"
    if isinstance(item, Tensor):
        plain = item.layout is torch.strided and item.dtype in wire.DTYPES and item.dim() <= wire.MAX_RANK
        return "tensor" if plain else "other"
    if isinstance(item, bool):
        return "bool"
    return "number" if isinstance(item, (int, float)) else "other"
