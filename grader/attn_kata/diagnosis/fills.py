"""Mistakes of a fill: a number that the source shows and that hides no key, and a mask that is applied to the weights again."""

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


def with_second_mask(pipeline: Pipeline, twice: bool) -> Pipeline:
    """The pipeline that knows a fill of 0 in code that masks `twice`, scores and weights, where it knows that of masks alone.

    The second mask, which is there for rows without a key, takes away a part of what the first one shows.
    """
    known = {variant.id for variant in pipeline.variants}
    if not twice or not {"mask", "remask"} <= pipeline.stages.keys() or "mask.zero_fill" not in known:
        return pipeline
    made = variants("mask.zero_fill", {"mask": s.mask_with_zero, "remask": s.mask_weights})
    return replace(pipeline, variants=(*pipeline.variants, *made))
