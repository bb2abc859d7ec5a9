"""Views that mix two dimensions: heads and tokens, or the places and the channels of an image."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from attn_kata.diagnosis.flow.follow import ancestors, descendants
from attn_kata.diagnosis.flow.shown import Flow
from attn_kata.properties.results import Step

_VIEWS = frozenset(("view", "reshape", "view_as", "unflatten", "flatten"))


def look(steps: Sequence[Step], softmaxes: list[int], found: Flow) -> None:
    """A view that mixes two dimensions, before a softmax of its numbers or of what comes of one."""
    before = {number for one in softmaxes for number in ancestors(steps, one)}
    after = descendants(steps, softmaxes)
    for number, step in enumerate(steps):
        source = step.sources[0] if step.sources else None
        if step.operation not in _VIEWS or source is None or (number not in before and number not in after):
            continue
        sizes, given = _plain(step.value.shape), _plain(steps[source].value.shape)
        if _mixes(given, sizes):
            of_images = len(given) != len(sizes) and (number in before) == (len(sizes) < len(given))
            of_images = of_images and max(len(given), len(sizes)) > 3  # (B, channels, height, width)
            id = "split.no_transpose" if number in before else "merge.no_transpose"
            id = "layout.mixed_places" if of_images else id
            found.makes(id, step.line)
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
