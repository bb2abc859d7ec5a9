"""By what the scores are divided."""

from __future__ import annotations

from collections.abc import Sequence

from attn_kata.diagnosis.flow.follow import Scored, back, near, size_of_sums
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.properties.results import Step

_MOST_HEADS = 16  # where they lie in the batch, so that their number is not seen


def look(steps: Sequence[Step], scored: Scored | None, width: int | None, found: Flow) -> None:
    """Scores of D products that are divided by the root of another size. `width`: that of all heads, where it is known."""
    scaled = None if scored is None else _scaled(steps, scored)
    if scaled is None:
        return
    product, factor, line = scaled
    summed = size_of_sums(steps, product)
    shape = steps[product].value.shape
    if summed is None or summed < 2 or line is None or len(shape) < 2:
        return
    if width and width % summed:
        return  # scores of channels, which sum over tokens
    size = 1 / factor**2  # the size whose root they are divided by
    if near(size, summed) or near(size, 1):
        found.right.add(("scale", line))
        return
    heads = [shape[1]] if len(shape) == 4 else [count for count in range(2, _MOST_HEADS + 1) if shape[0] % count == 0]
    whole = {summed * count for count in heads if count > 1} | ({width} if width else set())
    if any(near(size, one) for one in whole - {summed}):
        found.makes("scale.embed_dim", line)
    elif len(shape) == 4 and near(size, shape[1]):
        found.makes("scale.heads", line)
    elif near(size, shape[-1]) and (not width or width % shape[-1]):  # and no size of channels
        found.makes("scale.key_length", line)
    elif near(1 / size, summed):
        found.makes("scale.inverted", line)
    elif near(size, summed**2):
        found.makes("scale.no_sqrt", line)


def _scaled(steps: Sequence[Step], scored: Scored) -> Scored | None:
    """The product, the factor of it and of what it multiplies, and the line of that; None if that is not seen."""
    product, factor, line = scored
    is_made = False
    for source in steps[product].sources:
        before = back(steps, source, stop_at_fills=True)
        if before is None:
            return None
        is_made = is_made or before[0] is not None
        factor *= before[1]
        line = line if before[2] is None else before[2]
    return (product, factor, line) if is_made else None  # of what it is given, nothing says how wide a head is
