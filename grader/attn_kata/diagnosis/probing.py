"""Calls an attempt with the probes, and keeps its results, its exceptions, and whether two equal calls agree."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from attn_kata.diagnosis.outcomes import about_shapes, kept, tensors
from attn_kata.diagnosis.pipeline import Output, Pipeline, Probe, State
from attn_kata.diagnosis.search import EQUAL, Answer
from attn_kata.properties.failures import AttemptDied, AttemptRaised, NoAnswer, PropertyFailed, Raised
from attn_kata.properties.handle import Handle, Module, Target, number_for

SEED = 7919  # probes do not depend on the grading's seed: they compare a formula, not a statistic


@dataclass(frozen=True, kw_only=True)
class ProbeCall:
    """A probe with the weights of the module."""

    probe: Probe
    weights: dict[str, torch.Tensor]


@dataclass(kw_only=True)
class ProbeResults:
    """One pipeline's probes: their first states, the attempt's answers, and its exceptions."""

    sizes: dict[str, int]
    calls: list[ProbeCall] = field(default_factory=list)
    begun: list[State] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    unsteady: bool = False
    died: bool = False
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def nan_where_masked(self) -> bool:
        """Whether all probes with a masked key (at least one) gave only NaN."""
        masks = [getattr(state, "keep", None) for state in self.begun]
        hiding = [
            answer
            for keep, answer in zip(masks, self.answers, strict=True)
            if isinstance(keep, torch.Tensor) and keep.dtype == torch.bool and not bool(keep.all())
        ]
        return bool(hiding) and all(_nothing_but_nan(answer) for answer in hiding)

    def fixed_rank(self) -> bool:
        """Whether all probes with one number of dimensions were answered, and all others raised for a shape."""
        ranks = [len(self._first_shape(call)) for call in self.calls]
        told = {rank for rank, answer in zip(ranks, self.answers, strict=True) if answer.output is not None}
        raised = [
            (rank, answer.raised) for rank, answer in zip(ranks, self.answers, strict=True) if answer.output is None
        ]
        return len(told) == 1 and bool(raised) and all(rank not in told and about_shapes(text) for rank, text in raised)

    def raised_for(self, cause: Callable[[str], bool]) -> bool:
        """Whether some probes were answered, and all others raised for this cause."""
        raised = [answer.raised for answer in self.answers if answer.output is None]
        return 0 < len(raised) < len(self.answers) and all(map(cause, raised))

    def raised_without_mask(self, cause: Callable[[str], bool]) -> bool:
        """Whether every probe without one of its inputs raised for this cause, and every other one was answered."""
        told = [
            (any(one is None for one in call.probe.args), answer)
            for call, answer in zip(self.calls, self.answers, strict=True)
        ]
        without = [answer for is_left_out, answer in told if is_left_out]
        given = [answer for is_left_out, answer in told if not is_left_out]
        answered = bool(given) and all(one.output is not None for one in given)
        return answered and bool(without) and all(one.output is None and cause(one.raised) for one in without)

    def without_raised(self) -> ProbeResults:
        """The probes that were answered."""
        return self._only([answer.output is not None for answer in self.answers])

    def without_ones(self) -> ProbeResults:
        """The probes without a size of 1 in their first tensor."""
        return self._only([1 not in self._first_shape(call) for call in self.calls])

    def first(self) -> ProbeResults:
        """The first probe alone."""
        return self._only([place == 0 for place in range(len(self.calls))])

    @staticmethod
    def _first_shape(call: ProbeCall) -> tuple[int, ...]:
        return next((tuple(one.shape) for one in call.probe.args if isinstance(one, torch.Tensor)), ())

    def without_nan(self) -> ProbeResults:
        """The probes whose answers are not entirely NaN."""
        return self._only([not _nothing_but_nan(answer) for answer in self.answers])

    def _only(self, told: list[bool]) -> ProbeResults:
        return replace(
            self,
            calls=[call for call, kept in zip(self.calls, told, strict=True) if kept],
            begun=[state for state, kept in zip(self.begun, told, strict=True) if kept],
            answers=[answer for answer, kept in zip(self.answers, told, strict=True) if kept],
        )


def _nothing_but_nan(answer: Answer) -> bool:
    return answer.output is not None and all(bool(part.isnan().all()) for part in tensors(answer.output))


def ask(pipeline: Pipeline, attempt: Handle, reference: Handle, *, if_it_answers: bool = False) -> ProbeResults:
    """Call the attempt with every probe, twice with the first one; `if_it_answers`, no further one where that has no answer."""
    torch.default_generator.manual_seed(SEED)  # torch.manual_seed formats three stacks, for devices that nobody uses
    probes = pipeline.probes()
    asked = ProbeResults(sizes=probes[0].sizes)
    for place, probe in enumerate(probes):
        put = ProbeCall(probe=probe, weights=_weights(pipeline, reference, probe))
        number_for(SEED + place)  # whatever was asked before, the attempt draws the same
        try:
            answer = _answer(asked, pipeline, attempt, put, twice=place == 0)
            fitting = put.weights if answer is not None else _with_its_biases(pipeline, attempt, put)
            if fitting is not put.weights:
                known = {name: fitting.get(name, torch.zeros_like(weight)) for name, weight in put.weights.items()}
                put = ProbeCall(probe=probe, weights=fitting)
                answer = _answer(asked, pipeline, attempt, put, twice=place == 0)
            else:
                known = put.weights
        except AttemptDied:  # stop here: the next probe would take as long
            return ProbeResults(
                sizes={}, raised=asked.raised, unsteady=asked.unsteady, died=True, parameters=asked.parameters
            )
        if answer is not None:
            asked.calls.append(put)
            asked.begun.append(pipeline.first_state(known, probe))
            asked.answers.append(answer)
        if if_it_answers and not any(one.output is not None for one in asked.answers):
            break
    return asked


def _answer(asked: ProbeResults, pipeline: Pipeline, attempt: Handle, put: ProbeCall, *, twice: bool) -> Answer | None:
    """The attempt's answer to one probe; None when its module cannot take the weights."""
    answer = Answer(output=None)
    # float64 first. If that fails, again with lenient views, then in float32: an attempt with a dtype or layout mistake
    # may have other mistakes to explain, and either of these two hides the other.
    for dtype, lenient in itertools.product((torch.float64, torch.float32), (False, True)):
        try:
            asking = target(pipeline, attempt, put, dtype)
            if isinstance(asking, Module):
                asked.parameters = asking.parameters
            options = {"training": False if isinstance(asking, Module) else None, "lenient_views": lenient}
            asking, everything = asking._with(options), attempt._with(options)
            answer = Answer(output=output_of(pipeline, asking, everything, put.probe, dtype))
            if twice:
                again = Answer(output=output_of(pipeline, asking, everything, put.probe, dtype))
                asked.unsteady = _differs(answer, again)
            return answer
        except (RuntimeError, IndexError, ValueError) as failure:  # what the attempt returned cannot be put together
            answer = Answer(output=None, raised=str(failure))
        except AttemptRaised as failure:
            asked.raised.append(failure.raised)
            answer = Answer(output=None, raised=failure.raised.text)
            if _is_of_neither(failure.raised):
                break
        except NoAnswer as failure:
            return Answer(output=None, raised=failure.message)
        except PropertyFailed:  # the weights do not fit its parameters
            return None
    return answer


def _is_of_neither(raised: Raised) -> bool:
    """Whether another dtype, or views that copy, cannot mend what it raises: a name, a missing argument, a size."""
    if raised.types[0] in ("NameError", "UnboundLocalError", "AttributeError"):
        return True
    if raised.types[0] == "TypeError":
        return re.search(r"(?i)float|double|half|dtype", raised.text) is None
    return about_shapes(raised.text)


def _weights(pipeline: Pipeline, reference: Handle, probe: Probe) -> dict[str, torch.Tensor]:
    if not pipeline.module:
        return {}
    shapes: dict[str, tuple[int, ...]] = kept(
        pipeline,
        ("parameters", probe.build, reference._transport),
        lambda: getattr(reference, pipeline.entry)(*probe.build).parameters,
    )
    return probe.weights(shapes)


def _with_its_biases(pipeline: Pipeline, attempt: Handle, put: ProbeCall) -> dict[str, torch.Tensor]:
    """The weights without the biases that the attempt's module lacks, and with 0 for those that only it has.

    A bias too few or too many has a name of its own, and the rest of the attempt may be looked at. Of other parameters, nothing
    is changed: the weights then do not fit.
    """
    weights = put.weights
    if not pipeline.module:
        return weights
    try:
        shapes: dict[str, tuple[int, ...]] = getattr(attempt, pipeline.entry)(*put.probe.build).parameters
    except (PropertyFailed, RuntimeError, IndexError, ValueError):
        return weights
    lacks, beside = weights.keys() - shapes.keys(), shapes.keys() - weights.keys()
    if not (lacks or beside) or not all(name.endswith("bias") for name in (*lacks, *beside)):
        return weights
    return {
        name: weights[name] if name in weights else torch.zeros(shape, dtype=torch.float64)
        for name, shape in shapes.items()
    }


def target(pipeline: Pipeline, attempt: Handle, put: ProbeCall, dtype: torch.dtype) -> Target:
    """The attempt's function, or its module built for the probe, with the probe's weights in `dtype`."""
    named = getattr(attempt, pipeline.entry)
    if not pipeline.module:
        function: Target = named
        return function
    module: Module = named.loaded({name: weight.to(dtype) for name, weight in put.weights.items()}, *put.probe.build)
    return module


def output_of(
    pipeline: Pipeline, target: Target, everything: Handle, probe: Probe, dtype: torch.dtype = torch.float64
) -> Output:
    """What `target`, or for a probe of several calls every function of `everything`, gives on a probe, in `dtype`."""
    args = [
        value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for value in probe.args
    ]
    if pipeline.ask is not None:
        return pipeline.ask(target if pipeline.module else everything, *args)
    output: Output = target(*args)
    return output


def _differs(one: Answer, other: Answer) -> bool:
    if one.output is None or other.output is None:
        return True
    for mine, again in zip(tensors(one.output), tensors(other.output), strict=True):
        if mine.shape != again.shape:
            return True
        first, second = mine.double(), again.double()
        same = ((first - second).abs() <= EQUAL) | (first == second) | (first.isnan() & second.isnan())
        if not bool(same.all()):
            return True
    return False
