"""Mistakes that are searched for only where the source shows what they need: an exp, a product of a tensor with itself."""

from __future__ import annotations

from dataclasses import replace

from attn_kata.diagnosis.families import ONE_TENSOR, WEIGHTS
from attn_kata.diagnosis.pipeline import Pipeline


def with_written_softmax(pipeline: Pipeline, written: bool) -> Pipeline:
    """The pipeline that knows WEIGHTS too, if the softmax is `written` out and the pipeline has their stages."""
    known = {variant.id for variant in pipeline.variants}
    usual = {"score", "normalise", "mix"} <= pipeline.stages.keys()
    if not written or not usual or "softmax.not_normalised" in known:
        return pipeline
    return replace(pipeline, variants=(*pipeline.variants, *WEIGHTS))


def with_one_tensor(pipeline: Pipeline, written: bool) -> Pipeline:
    """The pipeline that knows ONE_TENSOR too, if the source multiplies a tensor by itself and the pipeline has scores."""
    if not written or not {"score", "normalise"} <= pipeline.stages.keys():
        return pipeline
    return replace(pipeline, variants=(*pipeline.variants, *ONE_TENSOR))
