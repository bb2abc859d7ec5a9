"""Mistakes whose number the source shows: masked scores filled with, or lowered by, a number that does not hide them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Variant, variants

LARGE = 1e3  # from here on a negative fill hides a key, and a positive one gives it all the weight


def with_fills(pipeline: Pipeline, numbers: Sequence[float]) -> Pipeline:
    """The pipeline that knows the fills `numbers` of a source too, where it knows a fill of 0."""
    known = next((one for one in pipeline.variants if one.id == "mask.zero_fill" and len(one.stages) == 1), None)
    if known is None:
        return pipeline
    (stage,) = known.stages
    made: list[Variant] = []
    for number in numbers:
        id = "mask.fill_sign" if number > LARGE else "mask.weak_fill"
        made += variants(id, {stage: s.mask_filled_with(number)}, {stage: s.mask_lowered_by(number)})
    return replace(pipeline, variants=(*pipeline.variants, *made)) if made else pipeline
