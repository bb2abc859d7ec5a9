"""The diagnosis of one failed attempt: probes, search, symptoms, lines and words."""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
import types
from dataclasses import dataclass, field
from functools import cache

import torch

from attn_kata.diagnosis import catalogue, lines
from attn_kata.diagnosis.departure import Departure, Traced, again, traced
from attn_kata.diagnosis.gradients import differ
from attn_kata.diagnosis.in_part import in_part
from attn_kata.diagnosis.outcomes import tensors
from attn_kata.diagnosis.pictures import draw
from attn_kata.diagnosis.pipeline import Pipeline
from attn_kata.diagnosis.probing import SEED, ProbeResults, ask
from attn_kata.diagnosis.raising import Ending, endings
from attn_kata.diagnosis.refinement import refined
from attn_kata.diagnosis.search import explain
from attn_kata.diagnosis.stages.masks import FINITE
from attn_kata.diagnosis.symptoms import EVERYWHERE, ZERO_TIMES_INF, Evidence, Symptom, asks_for_truth, is_of_none
from attn_kata.diagnosis.written import with_what_it_shows
from attn_kata.properties.failures import NoAnswer, PropertyFailed, RaisedAnother, ReadyMade
from attn_kata.properties.handle import Handle
from attn_kata.report.model import Diagnosis, Example, Finding, NamedMistake


@dataclass(frozen=True, kw_only=True)
class Diagnosed:
    """The smallest sets of mistakes that reproduce the attempt, pictures of its weights, and notes about it."""

    diagnoses: list[Diagnosis] = field(default_factory=list)
    pictures: list[Example] = field(default_factory=list)
    explained: bool = True
    notes: list[str] = field(default_factory=list)
    reproduced: bool = True
    unexplained: list[str] = field(default_factory=list)
    in_part: frozenset[str] = frozenset()  # those of them that are certain though something else is unknown
    of_ending: frozenset[str] = frozenset()  # those that only the operation shows at which it raises
    departures: list[Departure] = field(default_factory=list)  # on each probe, where nothing explains the numbers


@dataclass(kw_only=True)
class _Unknown:
    """What is seen of functions whose numbers no known mistakes give: on the way of the attempt, operation by operation.

    beside: mistakes that are certain though something else, which is unknown, is wrong too.
    lines: where certain mistakes were seen.
    far: how far the attempt is right on each probe.
    endings: where it raises about shapes.
    """

    beside: frozenset[str] = frozenset()
    lines: dict[str, int | None] = field(default_factory=dict)
    far: list[Departure] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)

    def explain(
        self, pipeline: Pipeline, asked: ProbeResults, attempt: Handle, finite: float, source: bytes
    ) -> list[frozenset[str]]:
        """The sets of mistakes that are certain for one function; [] for none."""
        followed = traced(pipeline, asked, attempt)
        part = in_part(pipeline, asked, followed)
        if part is None:
            self._keep(followed)
            self.endings += endings(pipeline, asked, followed)
            return []
        self.lines |= part.lines
        others = _explain(part.pipeline, part.asked, finite, source)
        if not others:
            self.beside |= frozenset(part.lines)
            self.endings += endings(part.pipeline, part.asked, followed)
            self._keep(again(part.pipeline, part.asked, followed))
        return [each | frozenset(part.lines) for each in others or [frozenset()]]

    def within(self, lines: int) -> list[Departure]:
        """How far it is right, of a source with so many lines: its process says the lines, and may say anything."""
        return [one for one in self.far if max(one.line, one.wrong_line or 0) <= lines]

    def _keep(self, followed: list[Traced]) -> None:
        self.far += [one.departure for one in followed if one.departure is not None and one.departure.wrong]


def diagnose(
    kata: types.ModuleType,
    attempt: Handle,
    reference: Handle,
    findings: list[Finding],
    failures: dict[str, PropertyFailed],
    source: bytes,
) -> Diagnosed:
    """Find the mistakes that reproduce the attempt, and draw its weights."""
    pipelines = with_what_it_shows(kata.PIPELINES, source)
    symptoms: tuple[Symptom, ...] = getattr(kata, "SYMPTOMS", ())
    text = _text(source)
    code = _code(source) or text
    finite = _finite_fill(code)
    asked = [ask(pipeline, attempt, reference) for pipeline in pipelines]
    fixed_rank = any(one.fixed_rank() for one in asked)
    needs_mask = any(one.raised_without_mask(is_of_none) for one in asked)
    asked = [  # what it answers shows its other mistakes
        one.without_raised() if one.fixed_rank() or one.raised_for(asks_for_truth) or needs_mask else one
        for one in asked
    ]
    if lines.squeezes_all(source):  # a size of 1 is lost there, and nothing else is told from its numbers
        asked = [one.without_ones() for one in asked]
    sets = [_explain(pipeline, one, finite, source) for pipeline, one in zip(pipelines, asked, strict=True)]
    unknown = _Unknown()
    for place, (pipeline, one) in enumerate(zip(pipelines, asked, strict=True)):
        if not sets[place]:
            sets[place] = unknown.explain(pipeline, one, attempt, finite, source)
    far = unknown.within(len(text.split("\n")))
    explained = all(sets) and not unknown.beside
    evidence = Evidence(
        failures=failures,
        held=frozenset(finding.property for finding in findings if finding.outcome == "passed"),
        raised=tuple(raised for one in asked for raised in one.raised),
        source=text,
        code=code,
        values_right=all(frozenset() in one for one in sets),
        unsteady=any(one.unsteady for one in asked),
        parameters={name: shape for one in asked for name, shape in one.parameters.items()},
        gradients_differ=_gradients_differ(pipelines, asked, sets, attempt, source),
        nan_where_masked=any(one.nan_where_masked() for one in asked),
        explained=explained,
        found=frozenset(id for one in sets if len(one) == 1 for id in one[0]),
        fixed_rank=fixed_rank,
        needs_mask=needs_mask,
    )
    shown: dict[str, int | None] = {}
    for symptom in (*symptoms, *EVERYWHERE):
        line = symptom.shows(evidence)
        if line is not None and symptom.id not in shown:
            shown[symptom.id] = line or None
    ending = next((one for one in unknown.endings if one.line <= len(text.split("\n"))), None)
    of_ending = frozenset[str]()
    if ending is not None and ending.mistake is not None and not shown:
        shown[ending.mistake] = unknown.lines[ending.mistake] = ending.line
        of_ending = frozenset({ending.mistake})
    for place, pipeline in enumerate(pipelines):
        if ZERO_TIMES_INF in shown:  # it explains every NaN, and hides other mistakes in them
            told = asked[place].without_nan()
            sets[place] = _explain(pipeline, told, finite, source) if told.answers else [frozenset()]
        known = shown.keys() | {id for one in sets if len(one) == 1 for id in one[0]}
        for id in pipeline.beside.keys() & known if not sets[place] else ():
            sets[place] = _explain(pipeline.assuming(id), asked[place], finite, source)
    _drop_doubtful(pipelines, asked, sets)
    sizes = {name: value for one in asked for name, value in one.sizes.items()} | _failing_sizes(findings)
    for name in getattr(kata, "UNSAID_SIZES", ()):
        sizes.pop(name, None)
    known = {variant.id for pipeline in pipelines for variant in pipeline.variants}
    found: list[frozenset[str]] = []
    for combination in _consistent(pipelines, list(itertools.product(*(one or [frozenset()] for one in sets))), sets):
        together = refined(frozenset().union(*combination, shown), source, known)
        if together and together not in found:
            found.append(together)
    smallest = min((len(ids) for ids in found), default=0)
    raised_line = _raising_line(evidence)
    found = _plausible([ids for ids in found if len(ids) == smallest], source, raised_line)
    entries = catalogue.load()
    diagnoses = [
        Diagnosis(
            mistakes=[
                _named(entries[id], sizes, source, shown.get(id) or raised_line, unknown.lines.get(id))
                for id in sorted(ids)
            ]
        )
        for ids in found
    ]
    notes = ["two calls with equal inputs gave different results"] if evidence.unsteady else []
    core = {finding.property for finding in findings if finding.tier == "core"}
    numbers = [
        name
        for name, failure in failures.items()
        if name in core and not isinstance(failure, (NoAnswer, RaisedAnother, ReadyMade))
    ]
    seen = any(answer.output is not None for one in asked for answer in one.answers)
    first = min(far, key=lambda one: len(one.right), default=None)
    if not diagnoses and numbers and seen:  # an exception, or wrong parameters, say themselves what is wrong
        notes.append(
            f"the values are right; no known mistake that breaks {', '.join(numbers[:3])} was seen in the code"
            if evidence.values_right
            else "no known mistake gives these numbers" + ("" if first else "; look at the properties that fail")
        )
    if first is not None:
        so_far = str(first)
        notes.append(f"apart from what is named, {so_far[0].lower()}{so_far[1:]}" if unknown.beside else so_far)
    if ending is not None:
        notes.append(
            f"{notes.pop()}: {ending}"
            if first is not None and first.ends
            else f"{str(ending)[0].upper()}{str(ending)[1:]}"
        )
    torch.default_generator.manual_seed(SEED)
    drawn = draw(kata.pictures(), attempt, reference) if hasattr(kata, "pictures") else []
    return Diagnosed(
        diagnoses=diagnoses,
        pictures=drawn,
        explained=explained,
        notes=notes,
        reproduced=any(ids for one in sets for ids in one),
        in_part=unknown.beside,
        of_ending=of_ending,
        departures=far,
        unexplained=[] if shown or not diagnoses else _unexplained(pipelines, asked, findings, failures),
    )


def _raising_line(evidence: Evidence) -> int | None:
    """The line that raised in the probes; of several, the one that changes a shape. None where that is not known."""
    raised = {one.line for one in evidence.raised}
    if len(raised) > 1:
        raised = {line for line in raised if re.search(r"\b(?:view|reshape)\(", evidence.line_text(line))}
    return raised.pop() if len(raised) == 1 else None


def _plausible(found: list[frozenset[str]], source: bytes, raised_line: int | None) -> list[frozenset[str]]:
    """The sets without those that the source plainly does not make, where it shows a line for each mistake of another set."""

    def line(id: str) -> int | None:
        return lines.find(id, source, raised_line=raised_line)

    shown = [ids for ids in found if all(line(id) is not None for id in ids)]
    if not shown:
        return found
    return [ids for ids in found if ids in shown or not any(id in lines.FINDERS and line(id) is None for id in ids)]


def _consistent(
    pipelines: tuple[Pipeline, ...],
    combinations: list[tuple[frozenset[str], ...]],
    sets: list[list[frozenset[str]]],
) -> list[tuple[frozenset[str], ...]]:
    """The combinations with the fewest mistakes that one function is said to make and another, which could, does not.

    A backward pass without the mask either forgot it, or belongs to a forward pass that lost it: the forward pass tells.
    """

    def alone(combination: tuple[frozenset[str], ...]) -> int:
        return sum(
            id not in ids and any(variant.id == id and variant.shows_in_values for variant in pipeline.variants)
            for pipeline, ids, one in zip(pipelines, combination, sets, strict=True)
            for id in frozenset().union(*combination)
            if one
        )

    counts = [alone(combination) for combination in combinations]
    return [combination for combination, count in zip(combinations, counts, strict=True) if count == min(counts)]


_NOT_BY_NUMBERS = re.compile(r"has shape|does not raise|was changed by the call|default device|give an output of")


def _unexplained(
    pipelines: tuple[Pipeline, ...],
    asked: list[ProbeResults],
    findings: list[Finding],
    failures: dict[str, PropertyFailed],
) -> list[str]:
    """The core properties that fail with no number, where every probe of the same attempt gave the numbers of the mistakes."""
    if any(answer.output is None for one in asked for answer in one.answers):
        return []  # the mistakes raise, too
    by_shape = any(map(_may_change_shapes, pipelines, asked))
    failing = [each.property for each in findings if each.tier == "core" and each.outcome == "failed"]
    return [
        name
        for name in failing
        if name in failures
        and _has_no_number(failures[name])
        and not (by_shape and "has shape" in failures[name].message)
    ]


def _may_change_shapes(pipeline: Pipeline, asked: ProbeResults) -> bool:
    """Whether an answer has another shape than the right result, or what is handed on between several calls may have."""
    if pipeline.ask is not None:
        return True
    for begun, answer in zip(asked.begun, asked.answers, strict=True):
        right, got = tensors(pipeline.result(begun).out), tensors(answer.output)
        if [part.shape for part in right] != [part.shape for part in got]:
            return True
    return False


def _has_no_number(failure: PropertyFailed) -> bool:
    if isinstance(failure, (NoAnswer, RaisedAnother, ReadyMade)):
        return True
    return _NOT_BY_NUMBERS.search(failure.message) is not None


def _drop_doubtful(
    pipelines: tuple[Pipeline, ...], asked: list[ProbeResults], sets: list[list[frozenset[str]]]
) -> None:
    """Take out of `sets` what an earlier function contradicts.

    Two functions of a kata that share a variant share the code that it is about. If the numbers of the first are those of no
    known mistake, the second shows the same unknown one: there it only looks like a known one, because less of it is seen.
    """
    doubtful: dict[int, str] = {}
    for place, (pipeline, one) in enumerate(zip(pipelines, asked, strict=True)):
        ids = frozenset(doubtful[id(variant)] for variant in pipeline.variants if id(variant) in doubtful)
        sets[place] = list(dict.fromkeys(found - ids for found in sets[place]))
        if not sets[place] and any(answer.output is not None for answer in one.answers):
            doubtful |= {id(variant): variant.id for variant in pipeline.variants}


def _explain(pipeline: Pipeline, asked: ProbeResults, finite: float, source: bytes) -> list[frozenset[str]]:
    """The sets of mistakes that explain one entry point; [] if two equal calls differ, or no answer is a tensor."""
    if asked.unsteady or not any(answer.output is not None for answer in asked.answers):
        return []

    @cache
    def shown(id: str) -> bool:  # a missing scale has no line
        return id == "scale.missing" or lines.find(id, source) is not None

    return explain(pipeline, asked.begun, asked.answers, finite=finite, likely=shown)


def _gradients_differ(
    pipelines: tuple[Pipeline, ...],
    asked: list[ProbeResults],
    sets: list[list[frozenset[str]]],
    attempt: Handle,
    source: bytes,
) -> bool:
    """Whether the gradients differ from those of the mistakes found. Checked only if the source may cut the graph.

    For right values, the hidden tests check the gradients.
    """
    if not lines.leaves_the_graph(source):
        return False
    return any(
        len(found) == 1 and found[0] and differ(pipeline, one, attempt, found[0])
        for pipeline, one, found in zip(pipelines, asked, sets, strict=True)
    )


def _failing_sizes(findings: list[Finding]) -> dict[str, int]:
    """The sizes of the first failed core case: the report shows them, and the explanation uses the same."""
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
    """The source without comments and docstrings; "" if it cannot be parsed. Nothing is executed."""
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if (
                isinstance(body, list)
                and body
                and isinstance(body[0], ast.Expr)
                and isinstance(body[0].value, ast.Constant)
            ):
                body[0].value = ast.Constant(value=None)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _named(
    entry: catalogue.Entry, sizes: dict[str, int], source: bytes, raised_line: int | None, measured: int | None
) -> NamedMistake:
    """The mistake with its words. `measured`: the line where its numbers were seen, for one that no syntax shows."""
    texts = _text(source).split("\n")  # as Python counts lines
    line = lines.find(entry.id, source, raised_line=raised_line) or measured
    line = line if line is not None and line <= len(texts) else None
    return NamedMistake(
        id=entry.id,
        title=entry.title,
        explanation=catalogue.describe(entry.id, sizes),
        question=entry.question,
        line=line,
        source_line=texts[line - 1].strip() if line else None,
    )


def _finite_fill(code: str) -> float:
    """The large number that the source uses instead of -inf. It appears in the output if masked scores are used raw."""
    if "finfo" in code:
        return float(torch.finfo(torch.float64).min)
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d*)?(?:e\+?\d+)?", code)
    return -max((float(number) for number in numbers if 1e3 < float(number) < float("inf")), default=-FINITE)
