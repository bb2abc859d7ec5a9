"""The search: the smallest sets of mistakes whose output equals the attempt's on every probe."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attn_kata.diagnosis.outcomes import (
    Known,
    Outcome,
    Outcomes,
    about_shapes,
    error_kind,
    kept,
    known,
    known_outcome,
    outcome,
    outcomes,
    tells,
    tensors,
)
from attn_kata.diagnosis.pipeline import Output, Pipeline, State, Variant
from attn_kata.diagnosis.stages.masks import FINITE, MASKING

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


# What Python says of names, attributes and calls: no stage raises it, with any mistake.
_OF_PYTHON = re.compile(
    r"^name '\w+' is not defined|^cannot access local variable|referenced before assignment|object has no attribute|NoneType"
    r"|positional argument|unexpected keyword argument|^unsupported operand type"
    r"|object is not (?:callable|subscriptable|iterable)"
)


def explain(
    pipeline: Pipeline,
    begun: list[State],
    answers: list[Answer],
    *,
    finite: float = FINITE,
    most: int = MOST,
    likely: Callable[[str], bool] = lambda id: True,
    first: bool = False,
) -> list[frozenset[str]]:
    """The smallest sets of mistake ids that explain every answer; [frozenset()] if no mistake is needed, [] if none fits.

    With `first`, those that are found first: for whoever asks how many mistakes it takes, and not which ones.

    `begun` are the pipeline's first states for the probes and `answers` the attempt's. All pairs are tried, and triples up to
    `TRIPLES` and `TRIALS`, those of `likely` ids first; no set of more than `most`.
    With a mistake, it matters how the rest computes: each right way to mask (`stages.MASKING`), filling with `finite`, and each
    of the pipeline's `ways` is tried.
    Where no set raises what the attempt raises, its errors of shape are compared as such: the notation decides where one shows.
    """
    if answers and answers[0].output is None and answers[0].instead is None and _OF_PYTHON.search(answers[0].raised):
        return []
    begun, answers = _steered(known(pipeline, begun), answers)
    found = _smallest(pipeline, begun, answers, finite, most, likely, first=first)
    if found is None and any(answer.output is None and about_shapes(answer.raised) for answer in answers):
        loose = [_any_of_shapes(pipeline, *both) for both in zip(begun, answers, strict=True)]
        found = _smallest(pipeline, begun, loose, finite, min(most, 2), likely, first=False)
        found = found if found is not None and len(found) == 1 else None
    return found or []


def _any_of_shapes(pipeline: Pipeline, state: State, answer: Answer) -> Answer:
    """The answer; if it raised for a shape, as one that is equal to any result of a wrong shape."""
    if answer.output is not None or not about_shapes(answer.raised):
        return answer
    right = outcome(pipeline, state, ())
    if isinstance(right, str):  # sizes that a reading has made equal
        return answer
    return replace(answer, instead=_layout(right))


def _layout(state: State) -> tuple[object, ...]:
    """The shapes of the result, and how many dimensions its scores had: code with fixed dimensions raises for others."""
    scores = getattr(state, "scores", None)
    return (*(part.shape for part in tensors(state.out)), None if scores is None else scores.dim())


def _smallest(
    pipeline: Pipeline,
    begun: list[State],
    answers: list[Answer],
    finite: float,
    most: int,
    likely: Callable[[str], bool],
    *,
    first: bool,
) -> list[frozenset[str]] | None:
    """The smallest sets of at most `most` mistakes, with `first` those of one way; [] at a near miss, None if none fits."""
    nearly_right, tried = False, 0
    # By the place of a way among all. The first is the usual one.
    telling: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
    for count in range(most + 1):
        ways = [begun, *(_masking(pipeline, begun, way, finite) for way in MASKING if count and _masked(begun))]
        # The first probe prunes the search. If it has no mask, all ways of masking agree on it: one walk is enough.
        walks = [ways] if not _masked(begun[:1]) else [[way] for way in ways]
        computing = [pipeline, *(pipeline.in_ways if count else ())]
        # Where there are many pairs, few of the triples could be tried at all: they get what the pairs leave.
        share = len(walks) * len(computing)
        most_tried = min(TRIPLES, max(0, TRIALS - tried)) // share if count == MOST else None
        agreeing: list[tuple[Variant, ...]] = []  # with the first answer, in the usual way
        matched: set[frozenset[str]] = set()
        near: set[frozenset[str]] = set()
        for place, (together, one) in enumerate(itertools.product(walks, computing)):
            if first and matched:
                break
            if count > 1 and place and place not in telling:
                telling[place] = _telling(pipeline, walks[0][0], one, together[0])
            on_the_first, on_any = telling.get(place, (None, None))
            sets = [outcomes(one, together[0][0], count, most_tried, on_the_first)]
            shown = tuple(variant for variant in one.variants if likely(variant.id)) if count == MOST else one.variants
            if shown != one.variants:  # not all can be tried
                by_line = replace(one, variants=shown)
                sets.insert(0, outcomes(by_line, together[0][0], count, TRIPLES // share, on_the_first))
            tried += sum(map(len, sets))
            possible = itertools.chain.from_iterable(_possible(some, answers[0]) for some in sets)
            for each in itertools.chain(possible, _also(one, together[0][0], agreeing, on_the_first, on_any)):
                chosen, result = each.chosen, each.result
                hides = len(together) > 1 and each.holds_nan  # a mistake hides keys where there is no mask
                if distance(answers[0], result) >= RIVAL and not hides:
                    continue
                if not place:
                    agreeing.append(chosen)
                for states in together:
                    begins = known_outcome(one, states[0], chosen) if hides else result
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


def _possible(tried: Outcomes, answer: Answer) -> Iterable[Outcome]:
    """The outcomes that the answer may be equal to."""
    first = next(iter(tensors(answer.output)), None)
    return tried if first is None or answer.instead is not None else tried.near(first, RIVAL)


def _alone(pipeline: Pipeline, begun: list[State]) -> list[dict[int, State | str]]:
    """What each variant alone gives, by its `id()`, on every probe."""
    return [{id(each.chosen[0]): each.result for each in outcomes(pipeline, state, 1, None)} for state in begun]


def _telling(
    pipeline: Pipeline, begun: list[State], other: Pipeline, otherwise: list[State]
) -> tuple[frozenset[int], frozenset[int]]:
    """Which variants, by `id()`, give another result in another right way to compute or to mask than in the usual one.

    On the first probe, and on any. A set without one of these need not be tried in the other way. `other` is the pipeline
    itself or one of its `in_ways`, so it is kept with the results of the usual way.
    """
    return kept(other, ("telling", begun, otherwise), lambda: _differing(pipeline, begun, other, otherwise))


def _differing(
    pipeline: Pipeline, begun: list[State], other: Pipeline, otherwise: list[State]
) -> tuple[frozenset[int], frozenset[int]]:
    usual = kept(pipeline, ("alone", begun), lambda: _alone(pipeline, begun))
    pairs = list(zip(usual, _alone(other, otherwise), strict=True))
    differ = [frozenset(each for each in ours if not _same(ours[each], theirs[each])) for ours, theirs in pairs]
    return differ[0], frozenset().union(*differ)


def _same(one: State | str, other: State | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and one == other
    return distance(Answer(output=one.out), other) <= EQUAL


def _also(
    pipeline: Pipeline,
    begun: State,
    agreeing: list[tuple[Variant, ...]],
    on_the_first: frozenset[int] | None,
    on_any: frozenset[int] | None,
) -> Iterator[Outcome]:
    """Those of the sets that give the first answer in the usual way that another way changes on a later probe only."""
    if on_the_first is not None and on_any is not None:
        for chosen in agreeing:
            if tells(chosen, on_any) and not tells(chosen, on_the_first):
                yield Outcome(chosen=chosen, result=known_outcome(pipeline, begun, chosen))


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
        other = known_outcome(pipeline, state, chosen)
        worst = max(worst, distance(answer, other))
        if worst >= RIVAL:
            return float("inf")
        evidence = evidence or (answer.output is not None and comparable(other))
    return worst if evidence else float("inf")


def _masked(begun: list[State]) -> bool:
    return any(getattr(state, "keep", None) is not None for state in begun)


def _masking(pipeline: Pipeline, begun: list[State], way: str, finite: float) -> list[State]:
    """These known states, with another right way of masking in later stages."""
    return kept(
        pipeline,
        ("masking", begun, way, finite),
        lambda: [Known(**{**vars(state), "masking": (way, finite)}) for state in begun],
    )
