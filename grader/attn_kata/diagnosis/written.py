"""Mistakes that a pipeline knows beside those of its kata, most of them only where the source shows what they need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from attn_kata.diagnosis import lines
from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.activations import with_activations
from attn_kata.diagnosis.families import ONE_TENSOR, WEIGHTS
from attn_kata.diagnosis.fills import with_fills, with_second_mask
from attn_kata.diagnosis.pipeline import Pipeline, variants


def with_what_it_shows(pipelines: Iterable[Pipeline], source: bytes) -> tuple[Pipeline, ...]:
    """The pipelines that also know an end after the weights, and what else may be wrong in this source."""
    fills, activations = lines.fill_numbers(source), lines.activations(source)
    written, twice = lines.writes_softmax(source), lines.masks_twice(source)
    of_one_tensor = lines.multiplies_by_itself(source)

    def with_all(pipeline: Pipeline) -> Pipeline:
        pipeline = with_weights_returned(with_one_tensor(with_written_softmax(pipeline, written), of_one_tensor))
        return with_activations(with_second_mask(with_fills(pipeline, fills), twice), activations)

    return tuple(map(with_all, pipelines))


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
    """The pipeline that knows an end after the weights, which are the result, if nothing but the mix comes after them."""
    if not {"normalise", "mix"} <= pipeline.stages.keys() or "output" in pipeline.stages:
        return pipeline
    names = [*pipeline.stages]
    after = dict.fromkeys(names[names.index("mix") + 1 :], s.nothing)
    made = variants("output.weights", {**after, "mix": s.weights_as_result})
    return replace(pipeline, variants=(*pipeline.variants, *made))
