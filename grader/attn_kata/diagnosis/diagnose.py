"""The diagnosis of one failed attempt: probes, search, symptoms, lines and words."""

from __future__ import annotations

import ast
import io
import itertools
import re
import time
import tokenize
import types
from dataclasses import dataclass, field

import torch

from ..engine.remote import AttemptDied
from ..properties.failures import AttemptRaised, NoAnswer, PropertyFailed, Raised
from ..properties.handle import Handle, Module, Target, random_weights
from ..report.model import Diagnosis, Example, Finding, NamedMistake
from . import catalogue, lines
from .pictures import draw
from .pipeline import Pipeline, Probe, State
from .search import EQUAL, Answer, explain
from .stages import FINITE
from .symptoms import EVERYWHERE, Evidence, Symptom

SEED = 7919  # probes need not change with the grading's seed: what is compared is a formula, not a statistic


@dataclass(frozen=True, kw_only=True)
class Diagnosed:
    """The smallest sets of mistakes that reproduce the attempt, pictures of its weights, and notes about it."""

    diagnoses: list[Diagnosis] = field(default_factory=list)
    pictures: list[Example] = field(default_factory=list)
    explained: bool = True
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """One pipeline's comparison: the smallest sets of ids, and what else the probes showed."""

    sets: list[frozenset[str]]
    raised: tuple[Raised, ...]
    unsteady: bool
    parameters: dict[str, tuple[int, ...]]
    sizes: dict[str, int]


def diagnose(
    kata: types.ModuleType,
    attempt: Handle,
    reference: Handle,
    findings: list[Finding],
    failures: dict[str, PropertyFailed],
    source: bytes,
    *,
    seconds: float,
) -> Diagnosed:
    """Look for what reproduces the attempt, and draw its weights. Takes little longer than `seconds`."""
    deadline = time.monotonic() + seconds
    pipelines: tuple[Pipeline, ...] = kata.PIPELINES
    symptoms: tuple[Symptom, ...] = getattr(kata, "SYMPTOMS", ())
    text = _text(source)
    finite = _finite_fill(_code(source) or text)
    compared = [_compare(pipeline, attempt, reference, deadline, finite) for pipeline in pipelines]
    evidence = Evidence(
        failures=failures,
        held=frozenset(finding.property for finding in findings if finding.outcome == "passed"),
        raised=tuple(raised for one in compared for raised in one.raised),
        source=text,
        code=_code(source) or text,
        values_right=all(frozenset() in one.sets for one in compared),
        unsteady=any(one.unsteady for one in compared),
        parameters={name: shape for one in compared for name, shape in one.parameters.items()},
    )
    shown: dict[str, int | None] = {}
    for symptom in (*symptoms, *EVERYWHERE):
        line = symptom.shows(evidence)
        if line is not None and symptom.id not in shown:
            shown[symptom.id] = line or None
    sizes = {name: value for one in compared for name, value in one.sizes.items()} | _failing_sizes(findings)
    found: list[frozenset[str]] = []
    for combination in itertools.product(*([*one.sets] or [frozenset()] for one in compared)):
        together = frozenset().union(*combination, shown)
        if together and together not in found:
            found.append(together)
    smallest = min((len(ids) for ids in found), default=0)
    entries = catalogue.load()
    diagnoses = [
        Diagnosis(mistakes=[_named(entries[id], sizes, source, shown.get(id)) for id in sorted(ids)])
        for ids in found
        if len(ids) == smallest
    ]
    notes = ["two equal calls gave two different answers"] if evidence.unsteady else []
    if not diagnoses and not evidence.values_right:
        notes.append("no known mistake reproduces this; the properties that fail are the evidence")
    torch.manual_seed(SEED)
    drawn = draw(kata.pictures(), attempt, reference) if hasattr(kata, "pictures") and time.monotonic() < deadline else []
    explained = all(one.sets for one in compared)
    return Diagnosed(diagnoses=diagnoses, pictures=drawn, explained=explained, notes=notes)


def _failing_sizes(findings: list[Finding]) -> dict[str, int]:
    """The sizes of the first core case that failed, which the report shows: the explanation speaks of the same."""
    for finding in findings:
        if finding.tier == "core" and finding.outcome == "failed" and finding.case:
            return {name: value for name, value in finding.case.items() if isinstance(value, int)}
    return {}


def _text(source: bytes) -> str:
    """The source as Python reads it (PEP 263), with "\\n" between lines."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        text = source.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _code(source: bytes) -> str:
    """The source without comments and docstrings; "" where it cannot be parsed. Nothing is run."""
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body[0].value = ast.Constant(value=None)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _named(entry: catalogue.Entry, sizes: dict[str, int], source: bytes, raised_line: int | None) -> NamedMistake:
    line = lines.find(entry.id, source, raised_line=raised_line)
    texts = _text(source).split("\n")  # as Python counts lines
    return NamedMistake(
        id=entry.id,
        title=entry.title,
        explanation=catalogue.describe(entry.id, sizes),
        question=entry.question,
        line=line,
        source_line=texts[line - 1].strip() if line and line <= len(texts) else None,
    )


def _finite_fill(code: str) -> float:
    """The large number that the source writes for -inf, which shows where masked scores are used raw."""
    if "finfo" in code:
        return float(torch.finfo(torch.float64).min)
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d*)?(?:e\+?\d+)?", code)
    return -max((float(number) for number in numbers if 1e3 < float(number) < float("inf")), default=-FINITE)


def _compare(pipeline: Pipeline, attempt: Handle, reference: Handle, deadline: float, finite: float) -> _Compared:
    """Ask the attempt every probe and look for what explains its answers."""
    torch.manual_seed(SEED)
    probes = pipeline.probes()
    begun: list[State] = []
    answers: list[Answer] = []
    raised: list[Raised] = []
    unsteady = False
    parameters: dict[str, tuple[int, ...]] = {}
    for place, probe in enumerate(probes):
        weights = _weights(pipeline, reference, probe)
        begun.append(pipeline.begin(weights, probe.build, *probe.args) if pipeline.module else pipeline.begin(*probe.args))
        answer: Answer | None = Answer(output=None)
        # float64 first; an attempt that cannot is asked again with strides forgiven, then in float32: what it computes is
        # still to be explained when how it computes is already known to be wrong.
        for dtype, lenient in ((torch.float64, False), (torch.float64, True), (torch.float32, True)):
            try:
                target = _target(pipeline, attempt, probe, weights, dtype)
                if isinstance(target, Module):
                    parameters = target.parameters
                answer = _ask(target, probe, dtype, lenient)
                if place == 0:
                    unsteady = unsteady or _differs(answer, _ask(target, probe, dtype, lenient))
                break
            except AttemptRaised as failure:
                raised.append(failure.raised)
                answer = Answer(output=None, raised=failure.raised.text)
            except NoAnswer as failure:
                answer = Answer(output=None, raised=failure.message)
                break
            except PropertyFailed:  # the weights do not fit its parameters: nothing can be asked at these sizes
                answer = None
                break
            except AttemptDied:  # once is enough: the next probe would cost as long
                return _Compared(sets=[], raised=tuple(raised), unsteady=unsteady, parameters=parameters, sizes={})
        if answer is None:
            begun.pop()
        else:
            answers.append(answer)
    sets: list[frozenset[str]] = []
    if not unsteady and any(answer.output is not None for answer in answers):
        # The first probe steers the search: one that was answered with a tensor.
        order = sorted(range(len(answers)), key=lambda place: answers[place].output is None)
        sets = explain(pipeline, [begun[i] for i in order], [answers[i] for i in order], deadline=deadline, finite=finite)
    return _Compared(
        sets=sets, raised=tuple(raised), unsteady=unsteady, parameters=parameters, sizes=probes[0].sizes
    )


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


def _ask(target: Target, probe: Probe, dtype: torch.dtype, lenient: bool) -> Answer:
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
