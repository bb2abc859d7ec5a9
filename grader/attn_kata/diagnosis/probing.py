"""The probes, put to an attempt: what it answers, what it raises, and whether it gives one answer twice."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ..engine.remote import AttemptDied
from ..properties.failures import AttemptRaised, NoAnswer, PropertyFailed, Raised
from ..properties.handle import Handle, Module, Target, random_weights
from .pipeline import Pipeline, Probe, State
from .search import EQUAL, Answer

SEED = 7919  # probes need not change with the grading's seed: what is compared is a formula, not a statistic


@dataclass(kw_only=True)
class Asked:
    """One pipeline's probes: their first states and the attempt's answers, those with a tensor first; and what else showed."""

    sizes: dict[str, int]
    begun: list[State] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    unsteady: bool = False
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)


def ask(pipeline: Pipeline, attempt: Handle, reference: Handle) -> Asked:
    """Ask the attempt every probe, the first one twice."""
    torch.manual_seed(SEED)
    probes = pipeline.probes()
    asked = Asked(sizes=probes[0].sizes)
    for place, probe in enumerate(probes):
        weights = _weights(pipeline, reference, probe)
        begun = pipeline.begin(weights, probe.build, *probe.args) if pipeline.module else pipeline.begin(*probe.args)
        try:
            answer = _answer(asked, pipeline, attempt, probe, weights, twice=place == 0)
        except AttemptDied:  # once is enough: the next probe would cost as long
            return Asked(sizes={}, raised=asked.raised, unsteady=asked.unsteady, parameters=asked.parameters)
        if answer is not None:
            asked.begun.append(begun)
            asked.answers.append(answer)
    # The first probe steers the search: one that was answered with a tensor.
    order = sorted(range(len(asked.answers)), key=lambda place: asked.answers[place].output is None)
    asked.begun, asked.answers = [asked.begun[i] for i in order], [asked.answers[i] for i in order]
    return asked


def _answer(
    asked: Asked, pipeline: Pipeline, attempt: Handle, probe: Probe, weights: dict[str, torch.Tensor], *, twice: bool
) -> Answer | None:
    """What the attempt answers to one probe; None where nothing can be asked at its sizes."""
    answer = Answer(output=None)
    # float64 first; an attempt that cannot is asked again with strides forgiven, then in float32: what it computes is
    # still to be explained when how it computes is already known to be wrong.
    for dtype, lenient in ((torch.float64, False), (torch.float64, True), (torch.float32, True)):
        try:
            target = _target(pipeline, attempt, probe, weights, dtype)
            if isinstance(target, Module):
                asked.parameters = target.parameters
            answer = _call(target, probe, dtype, lenient)
            if twice:
                asked.unsteady = _differs(answer, _call(target, probe, dtype, lenient))
            return answer
        except AttemptRaised as failure:
            asked.raised.append(failure.raised)
            answer = Answer(output=None, raised=failure.raised.text)
        except NoAnswer as failure:
            return Answer(output=None, raised=failure.message)
        except PropertyFailed:  # the weights do not fit its parameters
            return None
    return answer


def _weights(pipeline: Pipeline, reference: Handle, probe: Probe) -> dict[str, torch.Tensor]:
    if not pipeline.module:
        return {}
    return random_weights(getattr(reference, pipeline.entry)(*probe.build).parameters)


def _target(
    pipeline: Pipeline, attempt: Handle, probe: Probe, weights: dict[str, torch.Tensor], dtype: torch.dtype
) -> Target:
    named = getattr(attempt, pipeline.entry)
    if not pipeline.module:
        function: Target = named
        return function
    module: Module = named(*probe.build)
    module.load({name: weight.to(dtype) for name, weight in weights.items()})
    return module


def _call(target: Target, probe: Probe, dtype: torch.dtype, lenient: bool) -> Answer:
    args = [
        value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value for value in probe.args
    ]
    training = False if isinstance(target, Module) else None
    return Answer(output=target.run(*args, training=training, lenient_views=lenient).output)


def _differs(one: Answer, other: Answer) -> bool:
    if one.output is None or other.output is None or one.output.shape != other.output.shape:
        return True
    first, second = one.output.double(), other.output.double()
    same = ((first - second).abs() <= EQUAL) | (first == second) | (first.isnan() & second.isnan())
    return not bool(same.all())
