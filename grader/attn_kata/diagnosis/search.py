"""The search: the smallest sets of mistakes whose output equals the attempt's on every probe."""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Output, Pipeline, State, Variant
from attn_kata.diagnosis.stages.masks import FINITE, MASKING, weigh_later

EQUAL = 1e-5  # absolute plus relative: the precision of float32 arithmetic
RIVAL = 1e-3  # a set that is not equal must be at least this far away, or there is no diagnosis
MOST = 3  # mistakes in one set
TRIPLES = 4_000  # sets of three that are tried at most: counted, so that an attempt has one diagnosis on every machine
TRIALS = 6_000  # sets that are tried before no more of three are; all pairs always are


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An attempt's answer to a probe: a tensor, the tensors of a result in parts, or an exception.

    With `instead`, the layout of the right computation, the exception is about shapes: it is equal to any other about them,
    and to any other layout.
    """

    output: Output | None
    raised: str = ""  # the exception's message
    instead: tuple[object, ...] | None = None


# Messages of torch and their kinds; two errors are equal when they are of the same kind.
_SIZES = "sizes do not match"  # in a product, an einsum or a broadcast: the same mistake in different notations
_INDEX = "an index is out of range"  # of a tensor, a list or a tuple
_ERRORS = {
    "is invalid for input of size": "is invalid for input of size",
    "Dimension out of range": "Dimension out of range",
    "index out of range": _INDEX,
    "is out of bounds for dimension": _INDEX,
    "shapes cannot be multiplied": _SIZES,
    "must match the size of tensor": _SIZES,
    "must match the existing size": _SIZES,
    "Expected size for first two dimensions of batch2 tensor": _SIZES,
    "does not broadcast with previously seen size": _SIZES,
    "not broadcastable": _SIZES,
    "does not match the broadcast shape": _SIZES,
    "does not match the shape of the indexed tensor": _SIZES,
}


# Messages about shapes in any notation: the same tensor with a dimension too many fails in a product, an einsum or a view.
_SHAPES = re.compile(
    "|".join(
        (
            *map(re.escape, (*_ERRORS, *_ERRORS.values())),
            "number of subscripts in the equation",
            "number of dimensions",
            "values to unpack",
            "must be a 3D tensor",
            "Expected 3-dimensional tensor",
            "doesn't match the broadcast shape",
            "Sizes of tensors must match",
            "inconsistent tensor size",
            "too many indices for tensor",
        )
    )
)


def about_shapes(message: str) -> bool:
    """Whether an exception's message, or its kind, is about the shapes of tensors."""
    return _SHAPES.search(message) is not None


def error_kind(message: str) -> str:
    """The kind of a torch error message; an unknown message is its own kind."""
    return next((kind for words, kind in _ERRORS.items() if words in message or message == kind), message)


def distance(answer: Answer, result: State | str) -> float:
    """The distance of an answer from a pipeline's result, which is a state or a kind of error.

    The largest difference relative to 1 + |expected|, over the compared rows; above RIVAL, any number from RIVAL up to
    it. NaN is equal only to NaN. 0 if both raise the same kind of error; infinity if only one raises, if the errors
    differ, or if the shapes differ.
    """
    if answer.instead is not None:
        failed = about_shapes(result) if isinstance(result, str) else _layout(result) != answer.instead
        return 0.0 if failed else float("inf")
    if answer.output is None or isinstance(result, str):
        alike = answer.output is None and isinstance(result, str) and error_kind(answer.raised) == result
        return 0.0 if alike else float("inf")
    got, expected = tensors(answer.output), tensors(result.out)
    if len(got) != len(expected):
        return float("inf")
    worst = 0.0
    for mine, right in zip(got, expected, strict=True):
        worst = max(worst, _apart(mine.to(torch.float64), right.to(torch.float64), getattr(result, "empty", None)))
        if worst >= RIVAL:
            break
    return worst


def tensors(output: Any) -> tuple[Tensor, ...]:
    """The tensors of an output that may be in parts."""
    return tuple(part for part in (output if isinstance(output, tuple) else (output,)) if isinstance(part, Tensor))


def _apart(got: Tensor, expected: Tensor, empty: Tensor | None) -> float:
    if got.shape != expected.shape:
        return float("inf")
    apart = (got - expected).abs()
    if empty is None and apart.numel():  # a cheaper test that most answers end at; not for NaN and infinity
        least = float(apart.max()) / (1 + float(expected.abs().max()))
        if RIVAL <= least < float("inf"):
            return least
    away = apart / (1 + expected.abs())
    away = torch.where(got.isnan() & expected.isnan() | (got == expected), 0.0, away)
    if empty is not None:
        away = away.masked_fill(_rows_like(empty, expected), 0.0)
    away = away.nan_to_num(nan=float("inf"))
    return float(away.max()) if away.numel() else 0.0


def comparable(state: State | str) -> bool:
    """Whether the result has anything to compare: a number in a row that is not empty."""
    if isinstance(state, str):
        return False
    empty = getattr(state, "empty", None)
    for out in tensors(state.out):
        told = ~out.to(torch.float64).isnan()
        if bool((told if empty is None else told & ~_rows_like(empty, out)).any()):
            return True
    return False


def _rows_like(empty: Tensor, out: Tensor) -> Tensor:
    """`empty` rows (..., Tq, 1), expanded to the result. For (B, Tq, E), a row is empty if any head's row is.

    If a mistake has mixed up the dimensions, rows cannot be matched, and every row counts as empty.
    """
    if empty.dim() == out.dim() + 1:
        empty = empty.any(dim=1)
    try:
        return empty.expand(out.shape)
    except RuntimeError:
        return torch.ones_like(out, dtype=torch.bool)


def explain(
    pipeline: Pipeline, begun: list[State], answers: list[Answer], *, finite: float = FINITE, most: int = MOST
) -> list[frozenset[str]]:
    """The smallest sets of mistake ids that explain every answer; [frozenset()] if no mistake is needed, [] if none fits.

    `begun` are the pipeline's first states for the probes and `answers` the attempt's. All pairs are tried, and triples up to
    `TRIPLES` and `TRIALS`; no set of more than `most`.
    With a mistake, it matters how the rest computes: each right way to mask (`stages.MASKING`), filling with `finite`, and each
    of the pipeline's `ways` is tried.
    Where no set raises what the attempt raises, its errors of shape are compared as such: the notation decides where one shows.
    """
    begun, answers = _steered(begun, answers)
    found = _smallest(pipeline, begun, answers, finite, most)
    if found is None and any(answer.output is None and about_shapes(answer.raised) for answer in answers):
        loose = [_any_of_shapes(pipeline, *both) for both in zip(begun, answers, strict=True)]
        found = _smallest(pipeline, begun, loose, finite, min(most, 2))
        found = found if found is not None and len(found) == 1 else None
    return found or []


def _any_of_shapes(pipeline: Pipeline, state: State, answer: Answer) -> Answer:
    """The answer; if it raised for a shape, as one that is equal to any result of a wrong shape."""
    if answer.output is not None or not about_shapes(answer.raised):
        return answer
    right = outcome(pipeline, state, ())
    assert not isinstance(right, str), right
    return replace(answer, instead=_layout(right))


def _layout(state: State) -> tuple[object, ...]:
    """The shapes of the result, and how many dimensions its scores had: code with fixed dimensions raises for others."""
    scores = getattr(state, "scores", None)
    return (*(part.shape for part in tensors(state.out)), None if scores is None else scores.dim())


def _smallest(
    pipeline: Pipeline, begun: list[State], answers: list[Answer], finite: float, most: int
) -> list[frozenset[str]] | None:
    """The smallest sets of at most `most` mistakes; [] at a near miss, None if none fits."""
    nearly_right, tried = False, 0
    usual: list[list[State | str]] = []
    telling: dict[
        int, tuple[frozenset[int], frozenset[int]]
    ] = {}  # by the place of a way among all; the first is the usual one
    for count in range(most + 1):
        ways = [begun, *(_masking(begun, way, finite) for way in MASKING if count and _masked(begun))]
        # The first probe prunes the search. If it has no mask, all ways of masking agree on it: one walk is enough.
        walks = [ways] if not _masked(begun[:1]) else [[way] for way in ways]
        computing = [pipeline, *(pipeline.in_way(way) for way in pipeline.ways if count)]
        # Where there are many pairs, few of the triples could be tried at all: they get what the pairs leave.
        most_tried = min(TRIPLES, max(0, TRIALS - tried)) // (len(walks) * len(computing))
        agreeing: list[tuple[Variant, ...]] = []  # with the first answer, in the usual way
        matched: set[frozenset[str]] = set()
        near: set[frozenset[str]] = set()
        for place, (together, one) in enumerate(itertools.product(walks, computing)):
            if count > 1 and place and place not in telling:
                usual = usual or _alone(pipeline, walks[0][0])
                telling[place] = _telling(pipeline, usual, _alone(one, together[0]))
            if place in telling:
                sets = _told(one, together[0][0], count, telling[place], agreeing)
            else:
                sets = _sets(one, together[0][0], count)
            for chosen, first in itertools.islice(sets, most_tried) if count == MOST else sets:
                tried += 1
                hides = len(together) > 1 and _holds_nan(first)  # a mistake hides keys where there is no mask
                if distance(answers[0], first) >= RIVAL and not hides:
                    continue
                if not place:
                    agreeing.append(chosen)
                for states in together:
                    begins = outcome(one, states[0], chosen) if hides else first
                    worst = _farthest(one, states, answers, chosen, begins)
                    if worst < RIVAL:
                        (matched if worst <= EQUAL else near).add(frozenset(variant.id for variant in chosen))
        # A near miss: no diagnosis. Where no mistake at all is one, so is every other way to be right; all digits tell then.
        if count and near - matched and not (nearly_right and matched):
            return []
        nearly_right = nearly_right or bool(near)
        smallest = min((len(ids) for ids in matched), default=0)
        if matched:
            return sorted((ids for ids in matched if len(ids) == smallest), key=sorted)
        if nearly_right and count:  # one mistake may change little, and is then told by all its digits
            return []
    return None


def _alone(pipeline: Pipeline, begun: list[State]) -> list[list[State | str]]:
    """What each variant alone gives on every probe."""
    return [[outcome(pipeline, state, (variant,)) for state in begun] for variant in pipeline.variants]


def _telling(
    pipeline: Pipeline, usual: list[list[State | str]], other: list[list[State | str]]
) -> tuple[frozenset[int], frozenset[int]]:
    """Which variants, by `id()`, give another result in another right way to compute or to mask than in the usual one.

    On the first probe, and on any.
    """
    pairs = list(zip(pipeline.variants, usual, other, strict=True))
    first = frozenset(id(variant) for variant, ours, theirs in pairs if not _same(ours[0], theirs[0]))
    return first, frozenset(id(variant) for variant, ours, theirs in pairs if not all(map(_same, ours, theirs)))


def _told(
    pipeline: Pipeline,
    begun: State,
    count: int,
    telling: tuple[frozenset[int], frozenset[int]],
    agreeing: list[tuple[Variant, ...]],
) -> Iterator[tuple[tuple[Variant, ...], State | str]]:
    """The sets to try in another way than the usual one, with the first probe's result; the others give what they gave there.

    `agreeing` are the sets that give the first answer in the usual way.
    """
    on_the_first, on_any = telling
    yield from _sets(pipeline, begun, count, on_the_first)
    for chosen in agreeing:
        if _tells(chosen, on_any) and not _tells(chosen, on_the_first):
            yield chosen, outcome(pipeline, begun, chosen)


def _same(one: State | str, other: State | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and one == other
    return distance(Answer(output=one.out), other) <= EQUAL


def _steered(begun: list[State], answers: list[Answer]) -> tuple[list[State], list[Answer]]:
    """Both lists, sorted so that the first probe rules out most: one with numbers in its answer and without a mask."""

    def lacks(place: int) -> tuple[bool, bool]:
        output = answers[place].output
        return output is None or any(bool(part.isnan().any()) for part in tensors(output)), _masked([begun[place]])

    order = sorted(range(len(begun)), key=lacks)
    return [begun[place] for place in order], [answers[place] for place in order]


def _farthest(
    pipeline: Pipeline, states: list[State], answers: list[Answer], chosen: tuple[Variant, ...], first: State | str
) -> float:
    """The largest distance over all probes; infinity from RIVAL on, or with nothing to compare."""
    worst, evidence = distance(answers[0], first), answers[0].output is not None and comparable(first)
    for state, answer in zip(states[1:], answers[1:], strict=True):
        other = outcome(pipeline, state, chosen)
        worst = max(worst, distance(answer, other))
        if worst >= RIVAL:
            return float("inf")
        evidence = evidence or (answer.output is not None and comparable(other))
    return worst if evidence else float("inf")


def _holds_nan(result: State | str) -> bool:
    return not isinstance(result, str) and any(bool(part.isnan().any()) for part in tensors(result.out))


def _masked(begun: list[State]) -> bool:
    return any(getattr(state, "keep", None) is not None for state in begun)


def _masking(begun: list[State], way: str, finite: float) -> list[State]:
    """These states, with another right way of masking in later stages."""
    states = [copy.copy(state) for state in begun]
    for state in states:
        state.masking = (way, finite)
    return states


def outcome(pipeline: Pipeline, begun: State, chosen: tuple[Variant, ...]) -> State | str:
    """The pipeline's result with these mistakes made, or the kind of error that they raise."""
    if pipeline.ask is not None:
        try:
            return pipeline.result(begun, chosen, after=weigh_later)
        except (RuntimeError, IndexError, ValueError) as error:
            return error_kind(str(error))
    return _advance(pipeline, begun, list(pipeline.stages), chosen)


def _sets(
    pipeline: Pipeline, begun: State, count: int, telling: frozenset[int] | None = None
) -> Iterator[tuple[tuple[Variant, ...], State | str]]:
    """Every set of `count` variants that replace different stages, with the first probe's result.

    With `telling`, only those with one of these variants, by `id()`.

    Stages before the first replaced one are computed once: the states after each prefix are shared down the tree. Where a probe
    takes several calls, nothing is shared.
    """
    names = list(pipeline.stages)
    place = {name: index for index, name in enumerate(names)}
    shown = (variant for variant in pipeline.variants if variant.shows_in_values)
    ordered = sorted(shown, key=lambda variant: _first(variant, place))
    if pipeline.ask is not None:
        for chosen in itertools.combinations(ordered, count):
            taken = [name for variant in chosen for name in variant.stages]
            if len(taken) == len(set(taken)) and _tells(chosen, telling):
                yield chosen, outcome(pipeline, begun, chosen)
        return

    def walk(
        state: State, done: int, chosen: tuple[Variant, ...], start: int
    ) -> Iterator[tuple[tuple[Variant, ...], State | str]]:
        """`state` is the state after the stages before `done`, with `chosen`; it may add the variants from `start` on."""
        if len(chosen) == count:
            yield chosen, _advance(pipeline, state, names[done:], chosen)
            return
        taken = {name for other in chosen for name in other.stages}
        for index in range(start, len(ordered)):
            variant = ordered[index]
            first = _first(variant, place)
            if taken & set(variant.stages):
                continue
            together = (*chosen, variant)
            if len(together) == count and not _tells(together, telling):
                continue
            reached = _advance(pipeline, state, names[done:first], chosen)
            if not isinstance(reached, str):
                yield from walk(reached, first, together, index + 1)
            elif len(together) == count:
                yield together, reached  # it raises before the last mistake

    yield from walk(begun, 0, (), 0)


def _tells(chosen: tuple[Variant, ...], telling: frozenset[int] | None) -> bool:
    return telling is None or any(id(variant) in telling for variant in chosen)


def _first(variant: Variant, place: dict[str, int]) -> int:
    return min(place[name] for name in variant.stages)


def _advance(pipeline: Pipeline, state: State, names: list[str], chosen: tuple[Variant, ...]) -> State | str:
    """The state after the stages of these names, with the chosen mistakes made, or the kind of error that one raises."""
    replaced = {name: stage for variant in chosen for name, stage in variant.stages.items()}
    reached = State(**vars(state))
    try:
        for name in names:
            (replaced.get(name) or pipeline.stages[name])(reached)
            weigh_later(reached)
    except (RuntimeError, IndexError, ValueError) as error:
        return error_kind(str(error))
    return reached
