"""A more exact id for a mistake, where the source shows without doubt how it was made."""

from __future__ import annotations

from collections.abc import Callable, Collection

from attn_kata.diagnosis import lines

# The values of both are equal: only the source tells them apart.
REFINED: dict[str, tuple[tuple[str, Callable[[bytes], bool]], ...]] = {
    "softmax.head_axis": (("softmax.no_dim", lines.softmax_without_dim),),
    "dropout.on_output": (("dropout.twice", lines.drops_twice),),
    "mask.lost": (
        ("mask.tiny", lines.mask_adds_almost_nothing),
        ("mask.query_axis", lines.masks_queries),  # where padded queries do not count, nothing is left of it
    ),
    "mask.inverted": (("mask.fill_sign", lines.fills_with_plus),),
}

# The numbers of one mistake are also those of two together: one of them shows in the source. Where a pipeline does not
# know the second, it knows another name for it.
TWO_FOR_ONE = {
    "mix.transposed": ("softmax.query_axis", lines.softmax_over_queries, ("project.swapped", "project.chunk_order"))
}


def refined(ids: frozenset[str], source: bytes, known: Collection[str]) -> frozenset[str]:
    """`ids` with the more exact id, or ids, for each mistake whose making `source` shows. The kata's mistakes are `known`."""
    exact = frozenset(one for id in ids for one in _exact(id, source, known))
    # With a dimension too many, the softmax along dimension 3 is not over the keys. Without it, it is.
    follows = "mask.broadcast" in exact and lines.softmax_along_fourth(source)
    return exact - {"softmax.query_axis"} if follows else exact


def _exact(id: str, source: bytes, known: Collection[str]) -> tuple[str, ...]:
    if id in TWO_FOR_ONE:
        first, shown, names = TWO_FOR_ONE[id]
        second = next((name for name in names if name in known), None)
        told = second is not None and (shown(source) or lines.find(second, source) is not None)
        return (first, second) if second is not None and told else (id,)
    return (next((exact for exact, shown in REFINED.get(id, ()) if shown(source)), id),)
