"""What code answers to probes under a reading, and how many mistakes explain it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from attn_kata.diagnosis.pipeline import Pipeline, Probe
from attn_kata.diagnosis.probing import ProbeResults
from attn_kata.diagnosis.search import explain

MOST_PROBES = 3  # for a choice; the diagnosis asks them all

Asked = list[tuple[Pipeline, ProbeResults]]


def mistakes(asked: Asked, most: int) -> int | None:
    """How many mistakes explain the answers, up to `most`; None if more."""
    counts = []
    for pipeline, one in asked:
        if one.unsteady or not one.answers:
            return None
        found = explain(pipeline, one.begun, one.answers, most=most)
        if not found:
            return None
        counts.append(len(found[0]))
    return max(counts, default=None)


def answers(asked: Asked) -> bool:
    """Whether there is a tensor among the answers."""
    return any(answer.output is not None for _, one in asked for answer in one.answers)


def partly(asked: Asked) -> bool:
    """Whether an answer is missing."""
    return any(answer.output is None for _, one in asked for answer in one.answers)


def masked_probe(probe: Probe) -> Probe | None:
    return probe if len(probe.args) > 1 and probe.args[-1] is not None else None


def some_probes(pipeline: Pipeline, chosen: Callable[[Probe], Probe | None], most: int = MOST_PROBES) -> Pipeline:
    """The pipeline with the first few of its probes, as `chosen` gives them."""
    probes = pipeline.probes

    def few() -> list[Probe]:
        return [probe for probe in map(chosen, probes()) if probe is not None][:most]

    return replace(pipeline, probes=few)
