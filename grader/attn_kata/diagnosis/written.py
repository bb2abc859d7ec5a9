"""Mistakes of every attention, some of them only where the source shows what they need: an exp, a product of one tensor."""

from __future__ import annotations

from dataclasses import replace

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import ONE_TENSOR, WEIGHTS
from attn_kata.diagnosis.pipeline import Pipeline, variants


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


def with_weights_returned(pipeline: Pipeline) -> Pipeline:
    """The pipeline that knows an end after the weights, which are the result, if it has weights and mixes values by them."""
    if not {"normalise", "mix"} <= pipeline.stages.keys():
        return pipeline
    names = [*pipeline.stages]
    after = dict.fromkeys(names[names.index("mix") + 1 :], s.nothing)
    made = variants("output.weights", {**after, "mix": s.weights_as_result})
    return replace(pipeline, variants=(*pipeline.variants, *made))
