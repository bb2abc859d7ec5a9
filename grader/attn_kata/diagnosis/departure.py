"""How far an attempt is right that no known mistake explains: what its operations give, beside the right computation.

Code may lay its tensors out as it likes. So something is q or the context where it has the same numbers in any order, and it is
the scores or the weights where it has the same rows, each along the keys, in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from attn_kata.diagnosis.alike import (
    ALIKE,
    factor_between,
    has_numbers,
    has_rows,
    has_sizes,
    is_in_heads,
    may_be_in_heads,
)
from attn_kata.diagnosis.outcomes import outcome
from attn_kata.diagnosis.pipeline import Pipeline, State
from attn_kata.diagnosis.probing import ProbeCall, ProbeResults, target
from attn_kata.diagnosis.search import EQUAL, Answer, distance
from attn_kata.properties.failures import AttemptDied, PropertyFailed
from attn_kata.properties.handle import Handle
from attn_kata.properties.results import RaisingOperation, Step, Trace

MANY = 0.2  # of the numbers of a step, in the next one
MOST_IN_TURN = 3  # results that one operation of a loop gives in turn: q, k and v, say

SCORES, WEIGHTS, CONTEXT, MERGED, OUTPUT = "the scores", "the weights", "the context", "the merged heads", "the output"
RESULT = "the result"  # what is returned, where all of these are right
SCALED = "the scores before the mask"
_AFTER_SCORES = (WEIGHTS, "v", "the heads of v", CONTEXT, MERGED, OUTPUT, RESULT)
_IN_ORDER = ("q", "k", "v", SCORES, WEIGHTS, CONTEXT, MERGED, OUTPUT)
_MIXES = ("matmul", "mm", "bmm", "einsum", "__matmul__", "__rmatmul__")
_PRODUCTS = ("linear", "addmm", "conv1d", "conv2d", *_MIXES)


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

    right: what of the right computation it computes, in order; empty only where q, k and v are given as they are.
    line: of the last of them; 0 for none.
    wrong: the first that it does not compute.
    wrong_line: of what it has in its place, where that is seen.
    factor: the number that its scores are the right ones times, where they are; 1 for right ones.
    mixes: whether what it mixes the values by are the right weights, so that what follows is wrong by itself.
    ends: whether it gives no tensor, so that what it has in the place of `wrong` may only be unfinished.
    """

    right: tuple[str, ...]
    line: int
    wrong: str
    wrong_line: int | None
    factor: float | None = None
    mixes: bool = False
    ends: bool = False

    @property
    def weights_may_be_wrong(self) -> bool:
        """Whether the first that is wrong is none of what comes after the weights, nor beside them."""
        return self.wrong not in ("", *_AFTER_SCORES[1:])

    def __str__(self) -> str:
        if self.wrong == RESULT:
            then = "It gives no tensor" if self.ends else "What is returned is not"
            return f"All is right up to the output (line {self.line}). {then}"
        right = f"{_are(self.right, 'right')} (line {self.line}). " if self.right else ""
        return right + self._what_is_wrong()

    def _what_is_wrong(self) -> str:
        if self.ends:
            return f"It ends before {_are((self.wrong,), 'right', capital=False)}"
        where = "" if self.wrong_line is None else f": line {self.wrong_line}"
        if self.wrong == SCORES and self.factor is not None:
            return f"The scores are the right ones times {self.factor:.4g}{where}"
        if self.wrong_line is None:
            return f"{_are((self.wrong,), 'not reached')}"
        return f"{_are((self.wrong,), 'the first that is wrong')}{where}"


@dataclass(frozen=True, kw_only=True)
class Traced:
    """One probe: what each operation of the attempt gave, and how far it is right; None where that cannot be seen.

    raising: the operation that raised, if one did.
    """

    steps: list[Step]
    departure: Departure | None
    raising: RaisingOperation | None = None

    def last_like(self, weights: Tensor) -> tuple[Tensor, ...]:
        """The last that it computes with as many numbers as weights (..., Tq, Tk), and their dimensions.

        () for none, and where it ends before it mixes by them.
        """
        ends = self.departure is not None and self.departure.ends
        return _last_like(self.steps, weights) if not ends or _mixes(self.steps, weights) else ()


RIGHT = Departure(right=_IN_ORDER, line=0, wrong="", wrong_line=None, factor=1.0)  # of a probe that it answers right


def _are(names: tuple[str, ...], what: str, *, capital: bool = True) -> str:
    """`q and the scores are right`: what is so of the things with these names."""
    *first, last = names
    many = bool(first) or last in (SCORES, WEIGHTS, MERGED) or last.startswith("the heads")
    text = f"{', '.join(first)} and {last}" if first else last
    text = text[0].upper() + text[1:] if capital and text.startswith("the ") else text  # q, k and v are names
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
        seen = asking.trace(*call.probe.args, training=False if pipeline.module else None)
    except (PropertyFailed, AttemptDied):
        seen = Trace(steps=[])
    raising = seen.raising if answer.output is None else None
    return Traced(steps=seen.steps, departure=_departure(pipeline, begun, answer, seen.steps), raising=raising)


def _departure(pipeline: Pipeline, begun: State, answer: Answer, steps: list[Step]) -> Departure | None:
    if distance(answer, outcome(pipeline, begun, ())) <= EQUAL:
        return RIGHT
    try:
        passed = _milestones(pipeline, begun, steps)
    except (RuntimeError, IndexError, ValueError):  # a mistake in the pipeline that raises here
        return None
    places = [_place(steps, one.is_it) for one in passed]
    reached = [place for place in places if place is not None]
    if not passed or not (reached or _are_given(begun)):
        return None
    reached_names = {one.name for one, place in zip(passed, places, strict=True) if place is not None}
    wrong = next(number for number in range(len(passed)) if _is_open(passed, places, number))
    last, first_wrong = max(reached, default=-1), passed[wrong]
    ends = answer.output is None
    mixes = first_wrong.name in (CONTEXT, MERGED)
    departure = Departure(
        right=tuple(name for name in _IN_ORDER if name in reached_names),
        line=steps[last].line if reached else 0,
        wrong=first_wrong.name,
        wrong_line=_line_instead(steps, first_wrong, last, reached),
        factor=1.0 if first_wrong.name in _AFTER_SCORES else None,
        mixes=mixes and _end_at(steps, seen(pipeline, begun)[WEIGHTS]),
        ends=ends,
    )
    right = seen(pipeline, begun)
    if first_wrong.name != SCORES or (ends and not _mixes(steps, right[SCORES])):  # they may be scaled after that
        return departure
    with_factor = _with_factor(departure, steps, right[SCORES])
    if SCALED not in right:
        return with_factor
    unmasked = _with_factor(departure, steps, right[SCALED])
    if with_factor.factor is None:  # what a mask does to them may be wrong, too
        return unmasked
    alike = unmasked.factor is not None and abs(unmasked.factor - with_factor.factor) <= ALIKE * abs(with_factor.factor)
    return unmasked if alike else with_factor  # its line is that of the scale, and not of the mask


def _mixes(steps: list[Step], weights: Tensor) -> bool:
    """Whether a product comes after all that could be the scores, so that nothing more is done to these."""
    last = max(_numbers_like(steps, weights), key=max, default=None)
    return last is not None and any(step.operation in _MIXES for step in steps[max(last) + 1 :])


def _last_like(steps: list[Step], weights: Tensor) -> tuple[Tensor, ...]:
    return tuple(steps[number].value for number in max(_numbers_like(steps, weights), key=max, default=[]))


def _numbers_like(steps: list[Step], weights: Tensor) -> list[list[int]]:
    """Which steps, or steps of a loop, could be weights (..., Tq, Tk)."""
    every = [[number] for number in range(len(steps))] + list(_loops(steps))
    return [
        one
        for one in every
        if sum(steps[number].value.numel() for number in one) == weights.numel()
        and all(has_sizes(steps[number].value, weights.shape[-2:]) for number in one)
    ]


def _end_at(steps: list[Step], weights: Tensor) -> bool:
    """Whether the last of these steps that could be weights are these."""
    last = _last_like(steps, weights)
    return bool(last) and along_keys(WEIGHTS, weights).is_it(last)


def _with_factor(departure: Departure, steps: list[Step], scores: Tensor) -> Departure:
    """The departure, with the number that the scores of these steps are the right ones times."""
    factor: float | None = None
    line = departure.wrong_line
    in_turn = ([number] for number in range(len(steps)))
    for rounds in sorted([*in_turn, *_loops(steps)], key=max, reverse=True):
        values = tuple(steps[number].value for number in rounds)
        if factor is None and has_numbers(scores, values):
            return departure  # they are scaled, and wrong in another way
        found = factor_between([*values], scores)
        if found is not None and factor is None and not _is_kept(steps, max(rounds)):
            return departure  # what comes of them has nothing of these numbers
        # The last factor counts: until they are scaled, right ones are too large as well. And the first line that has it.
        if found is not None and (factor is None or abs(found - factor) <= ALIKE * abs(factor)):
            factor, line = found, steps[rounds[-1]].line
    return replace(departure, factor=factor, wrong_line=line)


def _is_kept(steps: list[Step], number: int) -> bool:
    """Whether the next step of as many numbers as this one has many of them, as scores that are masked do, or is a softmax."""
    value = steps[number].value
    following = (one for one in steps[number + 1 :] if one.value.numel() == value.numel())
    after = next(following, None)
    if after is None or "softmax" in after.operation or "exp" in after.operation:
        return True
    numbers, others = value.reshape(-1).sort().values, after.value.reshape(-1)
    places = torch.searchsorted(numbers, others).clamp(max=len(numbers) - 1)
    near = torch.minimum((numbers[places] - others).abs(), (numbers[(places - 1).clamp(min=0)] - others).abs())
    return float((near <= ALIKE * (1 + float(numbers.abs().max()))).double().mean()) > MANY


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
        if name not in right or _are_given(begun):
            return
        add(name, partial(has_numbers, right[name]), shows_all=False)
        if any(may_be_in_heads(step.value, right[name]) for step in steps):
            is_it = partial(is_in_heads, right[name])
            found.append(replace(found[-1], name=f"the heads of {name}", is_it=is_it))

    add_input("q")
    add_input("k")
    found.append(along_keys(SCORES, right[SCORES]))
    found.append(along_keys(WEIGHTS, right[WEIGHTS]))
    add_input("v")
    for name in (CONTEXT, OUTPUT):
        if name in right:
            add(name, partial(has_numbers, right[name]))
        if name == CONTEXT and MERGED in right:
            add(MERGED, partial(has_rows, right[MERGED], dim=-1))
    return [*found, Milestone(name=RESULT, numbers=0, is_it=lambda _: False)]


def _are_given(begun: State) -> bool:
    """Whether the call is given queries, keys and values as they are, so that nothing has to make them."""
    return all(isinstance(getattr(begun, name, None), Tensor) for name in ("q", "k", "v"))


def along_keys(name: str, right: Tensor) -> Milestone:
    """The milestone of scores or weights (..., Tq, Tk)."""
    is_it = partial(has_rows, right, dim=-1)
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
            if stage == "scale":
                seen[SCALED] = now["scores"]
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


def is_computed(steps: list[Step], is_it: Callable[[tuple[Tensor, ...]], bool]) -> bool:
    """Whether one of these steps gives a tensor, or the rounds of a loop give it together."""
    return _place(steps, is_it) is not None


def _place(steps: list[Step], is_it: Callable[[tuple[Tensor, ...]], bool]) -> int | None:
    """The first step that gives a tensor, or the last of a loop whose rounds give it together."""
    for number, step in enumerate(steps):
        if is_it((step.value,)):
            return number
    return next((rounds[-1] for rounds in _loops(steps) if is_it(tuple(steps[n].value for n in rounds))), None)


def _loops(steps: list[Step]) -> Iterator[list[int]]:
    """The steps of one operation of one line that several rounds of a loop may have made."""
    alike: dict[tuple[int, str], list[int]] = {}
    for number, step in enumerate(steps):
        alike.setdefault((step.line, step.operation), []).append(number)
    for numbers, in_turn in itertools.product(alike.values(), range(1, MOST_IN_TURN + 1)):
        if len(numbers) > in_turn and len(numbers) % in_turn == 0:
            yield from (numbers[first::in_turn] for first in range(in_turn))
