"""Mistakes of a softmax that the source writes out: they are searched for only where it has an exp."""

from __future__ import annotations

from dataclasses import replace

from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pipeline import Pipeline


def with_written_softmax(pipeline: Pipeline, written: bool) -> Pipeline:
    """The pipeline that knows WEIGHTS too, if the softmax is `written` out and the pipeline has their stages."""
    known = {variant.id for variant in pipeline.variants}
    usual = {"score", "normalise", "mix"} <= pipeline.stages.keys()
    if not written or not usual or "softmax.not_normalised" in known:
        return pipeline
    return replace(pipeline, variants=(*pipeline.variants, *WEIGHTS))
