"""How far an attempt is right that no known mistake explains: what its operations give, beside the right computation.

Code may lay its tensors out as it likes. So something is q or the context where it has the same numbers in any order, and it is
the scores or the weights where it has the same rows, each along the keys, in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from attn_kata.diagnosis.outcomes import outcome
from attn_kata.diagnosis.pipeline import Pipeline, State
from attn_kata.diagnosis.probing import ProbeCall, ProbeResults, target
from attn_kata.diagnosis.search import EQUAL, Answer, distance
from attn_kata.properties.failures import AttemptDied, PropertyFailed
from attn_kata.properties.handle import Handle
from attn_kata.properties.results import Step

ALIKE = 1e-6  # of two numbers, relative to the largest
HIDDEN = 1e4  # a score at least as far from 0 is a masked one
MOST_IN_TURN = 3  # results that one operation of a loop gives in turn: q, k and v, say

SCORES, WEIGHTS, CONTEXT, MERGED, OUTPUT = "the scores", "the weights", "the context", "the merged heads", "the output"
RESULT = "the result"  # what is returned, where all of these are right
_AFTER_SCORES = (WEIGHTS, "v", "the heads of v", CONTEXT, MERGED, OUTPUT, RESULT)
_IN_ORDER = ("q", "k", "v", SCORES, WEIGHTS, CONTEXT, MERGED, OUTPUT)
_PRODUCTS = ("linear", "matmul", "mm", "bmm", "einsum", "addmm", "conv1d", "conv2d", "__matmul__", "__rmatmul__")


@dataclass(frozen=True, kw_only=True)
class Milestone:
    """Something that the right computation passes. `is_it` tells it from the tensors that code computes.

    `shows_all`: where it is right, all before it is. q, k and v are each for itself.
    """

    name: str
    numbers: int
    is_it: Callable[[tuple[Tensor, ...]], bool]
    shows_all: bool = False


@dataclass(frozen=True, kw_only=True)
class Departure:
    """How far an attempt is right on one probe.

    right: what of the right computation it computes, in order; never empty.
    line: of the last of them.
    wrong: the first that it does not compute.
    wrong_line: of what it has in its place, where that is seen.
    factor: the number that its scores are the right ones times, where they are; 1 for right ones.
    mixes: whether what it mixes the values by are the right weights, so that what follows is wrong by itself.
    """

    right: tuple[str, ...]
    line: int
    wrong: str
    wrong_line: int | None
    factor: float | None = None
    mixes: bool = False

    def __str__(self) -> str:
        if self.wrong == RESULT:
            return f"All is right up to the output (line {self.line}). What is returned is not"
        return f"{_are(self.right, 'right')} (line {self.line}). {self._what_is_wrong()}"

    def _what_is_wrong(self) -> str:
        where = "" if self.wrong_line is None else f": line {self.wrong_line}"
        if self.wrong == SCORES and self.factor is not None:
            return f"The scores are the right ones times {self.factor:.4g}{where}"
        if self.wrong_line is None:
            return f"{_are((self.wrong,), 'not reached')}"
        return f"{_are((self.wrong,), 'the first that is wrong')}{where}"


@dataclass(frozen=True, kw_only=True)
class Traced:
    """One probe: what each operation of the attempt gave, and how far it is right; None where that cannot be seen."""

    steps: list[Step]
    departure: Departure | None

    def last_like(self, weights: Tensor) -> tuple[Tensor, ...]:
        """The last that it computes with as many numbers as weights (..., Tq, Tk), and their dimensions; () for none."""
        return _last_like(self.steps, weights)


RIGHT = Departure(right=_IN_ORDER, line=0, wrong="", wrong_line=None, factor=1.0)  # of a probe that it answers right


def _are(names: tuple[str, ...], what: str) -> str:
    """`q and the scores are right`: what is so of the things with these names."""
    *first, last = names
    many = bool(first) or last in (SCORES, WEIGHTS, MERGED) or last.startswith("the heads")
    text = f"{', '.join(first)} and {last}" if first else last
    text = text[0].upper() + text[1:] if text.startswith("the ") else text  # q, k and v are names
    return f"{text} {'are' if many else 'is'} {what.replace('that is', 'that are') if many else what}"


def traced(pipeline: Pipeline, asked: ProbeResults, attempt: Handle) -> list[Traced]:
    """How far the attempt is right on each probe, with what it computes; [] for an attempt that cannot be followed."""
    if pipeline.ask is not None or asked.unsteady:  # several calls would each have its own, and two equal ones differ
        return []
    return [_traced(pipeline, *each, attempt) for each in zip(asked.calls, asked.begun, asked.answers, strict=True)]


def again(pipeline: Pipeline, asked: ProbeResults, seen: list[Traced]) -> list[Traced]:
    """The same, of what the attempt computed then, beside a pipeline that makes a mistake of its."""
    return [
        replace(one, departure=_departure(pipeline, begun, answer, one.steps))
        for one, begun, answer in zip(seen, asked.begun, asked.answers, strict=True)
    ]


def _traced(pipeline: Pipeline, call: ProbeCall, begun: State, answer: Answer, attempt: Handle) -> Traced:
    try:
        asking = target(pipeline, attempt, call, torch.float64)
        steps = asking.trace(*call.probe.args, training=False if pipeline.module else None)
    except (PropertyFailed, AttemptDied):
        steps = []
    return Traced(steps=steps, departure=_departure(pipeline, begun, answer, steps))


def _departure(pipeline: Pipeline, begun: State, answer: Answer, steps: list[Step]) -> Departure | None:
    if distance(answer, outcome(pipeline, begun, ())) <= EQUAL:
        return RIGHT
    try:
        passed = _milestones(pipeline, begun, steps)
    except (RuntimeError, IndexError, ValueError):  # a mistake in the pipeline that raises here
        return None
    places = [_place(steps, one) for one in passed]
    reached = [place for place in places if place is not None]
    if not reached:
        return None
    right = {one.name for one, place in zip(passed, places, strict=True) if place is not None}
    wrong = next(number for number in range(len(passed)) if _is_open(passed, places, number))
    last, first_wrong = max(reached), passed[wrong]
    mixes = answer.output is not None and first_wrong.name in (CONTEXT, MERGED)
    departure = Departure(
        right=tuple(name for name in _IN_ORDER if name in right),
        line=steps[last].line,
        wrong=first_wrong.name,
        wrong_line=_line_instead(steps, first_wrong, last, reached),
        factor=1.0 if first_wrong.name in _AFTER_SCORES else None,
        mixes=mixes and _end_at(steps, seen(pipeline, begun)[WEIGHTS]),
    )
    return _with_factor(departure, steps, seen(pipeline, begun)[SCORES]) if first_wrong.name == SCORES else departure


def _last_like(steps: list[Step], weights: Tensor) -> tuple[Tensor, ...]:
    every = [[number] for number in range(len(steps))] + list(_loops(steps))
    alike = [
        one
        for one in every
        if sum(steps[number].value.numel() for number in one) == weights.numel()
        and all(_has_sizes(steps[number].value, weights.shape[-2:]) for number in one)
    ]
    return tuple(steps[number].value for number in max(alike, key=max, default=[]))


def _end_at(steps: list[Step], weights: Tensor) -> bool:
    """Whether the last of these steps that could be weights are these."""
    last = _last_like(steps, weights)
    return bool(last) and along_keys(WEIGHTS, weights).is_it(last)


def same(got: tuple[Tensor, ...], wanted: Tensor) -> bool:
    """Whether it is one tensor, with the numbers of the other one and laid out as that."""
    return len(got) == 1 and got[0].shape == wanted.shape and _near(_told(got[0]), _told(wanted))


def _with_factor(departure: Departure, steps: list[Step], scores: Tensor) -> Departure:
    """The departure, with the number that the scores of these steps are the right ones times."""
    factor: float | None = None
    line = departure.wrong_line
    in_turn = ([number] for number in range(len(steps)))
    for rounds in sorted([*in_turn, *_loops(steps)], key=max, reverse=True):
        found = factor_between([steps[number].value for number in rounds], scores)
        # The last factor counts: until they are scaled, right ones are too large as well. And the first line that has it.
        if found is not None and (factor is None or abs(found - factor) <= ALIKE * abs(factor)):
            factor, line = found, steps[rounds[-1]].line
    return replace(departure, factor=factor, wrong_line=line)


def _is_open(passed: list[Milestone], places: list[int | None], number: int) -> bool:
    """Whether this milestone is not reached, and none that shows it is."""
    return places[number] is None and not any(
        places[later] is not None and passed[later].shows_all for later in range(number + 1, len(passed))
    )


def _line_instead(steps: list[Step], wrong: Milestone, last: int, right: list[int]) -> int | None:
    """The line of what an attempt has in the place of `wrong`: of as many numbers, after all that is right."""
    if not wrong.shows_all:  # q, k or v, which may come before others of them
        products = [step for number, step in enumerate(steps) if number not in right and step.operation in _PRODUCTS]
        return next((step.line for step in products if step.value.numel() == wrong.numbers), None)
    after = steps[last + 1 :]
    alike = (step for step in after if step.value.numel() == wrong.numbers)
    step = next(alike, next(iter(after), None))
    return None if step is None else step.line


def _milestones(pipeline: Pipeline, begun: State, steps: list[Step]) -> list[Milestone]:
    """What the right computation passes, in order; [] where it has no scores and weights. No step is the last of them."""
    right = seen(pipeline, begun)
    if not {SCORES, WEIGHTS} <= right.keys():
        return []
    found: list[Milestone] = []

    def add(name: str, is_it: Callable[[tuple[Tensor, ...]], bool], *, shows_all: bool = True) -> None:
        found.append(Milestone(name=name, numbers=right[name].numel(), is_it=is_it, shows_all=shows_all))

    def add_input(name: str) -> None:
        if name not in right:
            return
        add(name, partial(_has_numbers, right[name]), shows_all=False)
        if any(_may_be_in_heads(step.value, right[name]) for step in steps):
            is_it = partial(_is_in_heads, right[name])
            found.append(replace(found[-1], name=f"the heads of {name}", is_it=is_it))

    add_input("q")
    add_input("k")
    found.append(along_keys(SCORES, right[SCORES]))
    found.append(along_keys(WEIGHTS, right[WEIGHTS]))
    add_input("v")
    for name in (CONTEXT, OUTPUT):
        if name in right:
            add(name, partial(_has_numbers, right[name]))
        if name == CONTEXT and MERGED in right:
            add(MERGED, partial(_has_rows, right[MERGED], dim=-1))
    return [*found, Milestone(name=RESULT, numbers=0, is_it=lambda _: False)]


def along_keys(name: str, right: Tensor) -> Milestone:
    """The milestone of scores or weights (..., Tq, Tk)."""
    is_it = partial(_has_rows, right, dim=-1)
    return Milestone(name=name, numbers=right.numel(), is_it=is_it, shows_all=True)


def seen(pipeline: Pipeline, begun: State) -> dict[str, Tensor]:
    """What the stages of the right computation leave, by name, each as the next one takes it."""
    seen: dict[str, Tensor] = {}
    stages = iter(pipeline.stages)

    def look(state: State) -> None:
        stage = next(stages)
        now = {name: one for name, one in vars(state).items() if isinstance(one, Tensor)}
        if "scores" not in now:
            seen.update({name: now[name] for name in ("q", "k", "v") if name in now})
        elif "weights" not in now:
            seen[SCORES] = now["scores"]
        elif "out" not in now:
            seen[WEIGHTS] = now["weights"]
        elif CONTEXT not in seen:
            seen[CONTEXT] = now["out"]
        elif stage == "merge":
            seen[MERGED] = now["out"]
        else:
            seen[OUTPUT] = now["out"]

    final = pipeline.call(begun, after=look)
    if not {"q", "k", "v"} & seen.keys():  # given as they are, and scored by the first stage
        seen.update({name: one for name in ("q", "k", "v") if isinstance(one := getattr(final, name, None), Tensor)})
    return seen


def _place(steps: list[Step], milestone: Milestone) -> int | None:
    """The first step that gives the milestone, or the last of a loop whose rounds give it together."""
    for number, step in enumerate(steps):
        if milestone.is_it((step.value,)):
            return number
    return next(
        (rounds[-1] for rounds in _loops(steps) if milestone.is_it(tuple(steps[n].value for n in rounds))), None
    )


def _loops(steps: list[Step]) -> Iterator[list[int]]:
    """The steps of one operation of one line that several rounds of a loop may have made."""
    alike: dict[tuple[int, str], list[int]] = {}
    for number, step in enumerate(steps):
        alike.setdefault((step.line, step.operation), []).append(number)
    for numbers, in_turn in itertools.product(alike.values(), range(1, MOST_IN_TURN + 1)):
        if len(numbers) > in_turn and len(numbers) % in_turn == 0:
            yield from (numbers[first::in_turn] for first in range(in_turn))


def _has_numbers(right: Tensor, candidate: tuple[Tensor, ...]) -> bool:
    """Whether the tensors have the numbers of `right` in any order."""
    if not _may_be_equal(right, candidate):
        return False
    got, wanted = _told(torch.cat([one.reshape(-1) for one in candidate])), _told(right.reshape(-1))
    return _near(got.sort().values, wanted.sort().values)


def _has_rows(right: Tensor, candidate: tuple[Tensor, ...], *, dim: int, in_order: bool = True) -> bool:
    """Whether the rows along some dimension of the tensors are those along `dim` of `right`, in any order.

    With `in_order`, the numbers of a row are in the order of the right one, too.
    """
    size = right.shape[dim]
    if not _may_be_equal(right, candidate):
        return False
    wanted = _rows(right, dim)
    for other in range(1, max(one.dim() for one in candidate) + 1):
        if all(one.dim() >= other and one.shape[-other] == size for one in candidate):
            got = torch.cat([_rows(one, -other) for one in candidate])
            sides = [one if in_order else one.sort(dim=-1).values for one in (got, wanted)]
            by = torch.linspace(1, 2, size, dtype=torch.float64).sqrt()  # rows of weights all have the same plain sum
            if _near(*(one[(one @ by).argsort()] for one in sides)):
                return True
    return False


def _may_be_equal(right: Tensor, candidate: tuple[Tensor, ...]) -> bool:
    """Whether the tensors have as many numbers as `right`, and these the same sum: a cheap test that most end at."""
    if sum(one.numel() for one in candidate) != right.numel():
        return False
    wanted = _told(right)
    apart = sum(float(_told(one).sum()) for one in candidate) - float(wanted.sum())
    return abs(apart) <= ALIKE * right.numel() * (1 + float(wanted.abs().max()))


def _rows(tensor: Tensor, dim: int) -> Tensor:
    return _told(tensor).movedim(dim, -1).reshape(-1, tensor.shape[dim])


def _may_be_in_heads(value: Tensor, right: Tensor) -> bool:
    """Whether a tensor could be `right` (B, H, T, D): as many numbers, and a dimension for the tokens and one for a head."""
    return right.dim() == 4 and value.numel() == right.numel() and _has_sizes(value, right.shape[-2:])


def _has_sizes(value: Tensor, sizes: Sequence[int]) -> bool:
    """Whether a tensor has dimensions of these sizes, each its own."""
    return all(list(value.shape).count(size) >= list(sizes).count(size) for size in sizes)


def _is_in_heads(right: Tensor, candidate: tuple[Tensor, ...]) -> bool:
    """Whether the tensors have the vectors of `right` (B, H, T, D), and its tokens in order."""
    return _has_rows(right, candidate, dim=-2) and _has_rows(right, candidate, dim=-1, in_order=False)


def _told(tensor: Tensor) -> Tensor:
    """float64, with one number for all that a mask has put far away, and another for NaN."""
    numbers = tensor.to(torch.float64)
    return numbers.masked_fill(numbers.abs() >= HIDDEN, -HIDDEN).masked_fill(numbers.isnan(), HIDDEN)


def _near(got: Tensor, wanted: Tensor) -> bool:
    return float((got - wanted).abs().max()) <= ALIKE * (1 + float(wanted.abs().max()))


def factor_between(got: list[Tensor], wanted: Tensor) -> float | None:
    """The number that the numbers of `got` are those of `wanted` times, in any order; None where there is none, or 1.

    Without those that a mask has put far away.
    """
    if sum(one.numel() for one in got) != wanted.numel():
        return None
    flat = torch.cat([one.reshape(-1) for one in got]), wanted.reshape(-1).to(torch.float64)
    mine, right = (one[one.abs() < HIDDEN].sort().values for one in flat)
    if len(mine) != len(right) or len(mine) < 2 or not float(mine.abs().max()):
        return None
    size = float(mine.norm() / right.norm())
    for factor in (size, -size):
        if _near(mine, (right * factor).sort().values) and abs(factor - 1) > ALIKE:
            return factor
    return None
