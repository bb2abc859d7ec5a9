"""What code answers to probes under a reading, and how many mistakes explain it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from attn_kata.diagnosis.outcomes import error_kind, kept, outcome, tensors
from attn_kata.diagnosis.pipeline import Pipeline, Probe, Stage
from attn_kata.diagnosis.probing import ProbeResults
from attn_kata.diagnosis.search import Answer, explain
from attn_kata.readings.reading import Reading

MOST_PROBES = 3  # for a choice; the diagnosis asks them all

Asked = list[tuple[Pipeline, ProbeResults]]


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A reading with the number of mistakes that it needs; more than are looked for where nothing explains it."""

    mistakes: int
    reading: Reading
    answers: bool = True  # whether the code gives any tensor
    ties: tuple[Reading, ...] = ()  # others that need as many


def mistakes(asked: Asked, most: int) -> int | None:
    """How many mistakes explain the answers, up to `most`; None if more."""
    counts = []
    for pipeline, one in asked:
        if one.unsteady or not one.answers:
            return None
        found = explain(pipeline, one.begun, one.answers, most=most, first=True)
        if not found:
            return None
        counts.append(len(found[0]))
    return max(counts, default=None)


def explanations(asked: Asked, most: int) -> list[frozenset[str]]:
    """The sets of up to `most` mistakes that explain the answers, where there is one pipeline; [] for none."""
    if len(asked) != 1 or asked[0][1].unsteady or not asked[0][1].answers:
        return []
    pipeline, one = asked[0]
    return explain(pipeline, one.begun, one.answers, most=most)


def only(asked: Asked, known: frozenset[str]) -> Asked:
    """The same answers for a pipeline that may make these mistakes and no others."""
    return [
        (replace(pipeline, variants=tuple(one for one in pipeline.variants if one.id in known)), one)
        for pipeline, one in asked
    ]


def places(asked: Asked, known: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """Which variant of each of these mistakes explains the answers, by its place among the variants of its id."""
    every = [
        [(id, place) for place in range(sum(variant.id == id for variant in asked[0][0].variants))]
        for id in sorted(known)
    ]
    found = (each for each in itertools.product(*every) if mistakes(assuming(asked, each), 0) == 0)
    return next(found, tuple((id, 0) for id in sorted(known)))


def assuming(asked: Asked, known: tuple[tuple[str, int], ...]) -> Asked:
    """The same answers for a pipeline that makes these mistakes already, each in the variant of this place."""
    if not known:
        return asked
    return [(kept(pipeline, ("making", known), partial(_making, pipeline, known)), one) for pipeline, one in asked]


def _making(pipeline: Pipeline, known: tuple[tuple[str, int], ...]) -> Pipeline:
    """The pipeline with these mistakes among its stages. One for all forms of a mask: it keeps what sets of mistakes give."""
    stages: dict[str, Stage] = {}
    for id, place in known:
        alike = [variant for variant in pipeline.variants if variant.id == id]
        if alike:  # a function that takes a mask has a pipeline of its own, and may know fewer
            stages |= alike[min(place, len(alike) - 1)].stages
    open_to = tuple(each for each in pipeline.variants if not set(each.stages) & set(stages))
    return replace(pipeline, stages={**pipeline.stages, **stages}, variants=open_to)


def fits(asked: Asked) -> bool:
    """Whether the answers have the shapes of right ones, as far as there are answers."""
    return answers(asked) and all(
        _like(answer, outcome(pipeline, state, ()))
        for pipeline, one in asked
        for state, answer in zip(one.begun, one.answers, strict=True)
    )


def averages(asked: Asked) -> bool:
    """Whether the weights beside the output have no dimension for the heads: averaged, or with the heads in the batch."""
    found = [tensors(answer.output) for _, one in asked for answer in one.answers if answer.output is not None]
    return bool(found) and all(len(parts) > 1 and parts[0].dim() == parts[1].dim() == 3 for parts in found)


def _like(answer: Answer, right: object) -> bool:
    if answer.output is None or isinstance(right, str):
        return True
    shapes = [part.shape for part in tensors(answer.output)]
    return shapes == [part.shape for part in tensors(right.out)]  # type: ignore[attr-defined]


def about_sizes(asked: Asked) -> bool:
    """Whether what it raises is about sizes."""
    return any(error_kind(one.text) == _SIZES for _, each in asked for one in each.raised)


_SIZES = error_kind("must match the size of tensor")


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
