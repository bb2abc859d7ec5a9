"""Mistakes that are certain though something else, which is unknown, is wrong too: what the attempt computes shows them.

The search of the diagnosis compares results. Where no set of mistakes gives the result, the q, k and v, the scores and the
weights that the attempt computes on its way may still be those of a known mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from attn_kata.diagnosis.alike import ALIKE, factor_between, has_numbers, is_in_heads, same
from attn_kata.diagnosis.departure import CONTEXT, SCORES, WEIGHTS, Traced, again, along_keys, is_computed, seen
from attn_kata.diagnosis.outcomes import outcome, outcomes
from attn_kata.diagnosis.pipeline import Pipeline, Stage, State, Variant
from attn_kata.diagnosis.probing import ProbeResults

MOST = 2  # mistakes in one part of the computation


@dataclass(frozen=True, kw_only=True)
class InPart:
    """Mistakes that are certain, with the line of one that is measured. `pipeline` makes them; `asked` is what it is asked."""

    lines: dict[str, int | None]
    pipeline: Pipeline
    asked: ProbeResults


def in_part(pipeline: Pipeline, asked: ProbeResults, followed: list[Traced]) -> InPart | None:
    """The mistakes in q, k and v, in the scale, and in all that makes the weights, that every probe shows; None for none.

    Each is looked for beside those that are certain by then.
    """
    if not followed or len(followed) < len(asked.calls):
        return None
    found: InPart | None = None
    steps = [_of_inputs, _of_scale, _of_weights]
    while steps:
        step = steps.pop(0)
        more = step(pipeline, asked, followed)
        if more is None:
            continue
        if step is _of_inputs and found is None:
            steps.insert(0, step)  # a second mistake in them may show only beside the first
        found = more if found is None else replace(more, lines=found.lines | more.lines)
        pipeline, asked = more.pipeline, more.asked
        followed = again(pipeline, asked, followed)
    return found


def _of_inputs(pipeline: Pipeline, asked: ProbeResults, followed: list[Traced]) -> InPart | None:
    """The one mistake in how q, k and v are made and split into heads, or two, where every probe shows what they make."""
    names = list(pipeline.stages)
    if "score" not in names:
        return None
    right = seen(pipeline, asked.begun[0])
    made = [_like(right[name]) for name in ("q", "k", "v") if name in right]
    if all(is_computed(followed[0].steps, one) for one in made):
        return None  # so for most attempts
    before = set(names[: names.index("score")])
    single = [variant for variant in pipeline.variants if set(variant.stages) <= before]
    for tried in (((variant,) for variant in single), _pairs(pipeline, single, asked.begun[0], followed[0])):
        shown = [
            _with(pipeline, chosen, asked, None)
            for chosen in tried
            if all(map(partial(_shows_inputs, pipeline, _made(pipeline, chosen)), asked.begun, followed))
        ]
        shown = _told_by_what_follows(shown, asked, followed)
        if shown:
            return shown[0] if len(_ids(shown)) == 1 else None
    return None


def _told_by_what_follows(shown: list[InPart], asked: ProbeResults, followed: list[Traced]) -> list[InPart]:
    """Those after which the scores are right, and then the context, where the inputs alone do not tell.

    Which of the layers is taken twice the scores tell, and whether what is made once is meant for q and for k.
    """
    made = [seen(one.pipeline, asked.begun[0]) for one in shown]
    if len(_ids(shown)) == 1 and not any("k" in one and _like(one["q"])((one["k"],)) for one in made):
        return shown
    after = {id(one): again(one.pipeline, asked, followed) for one in shown}
    shown = [one for one in shown if all(map(_has_scores, after[id(one)]))]
    if len(_ids(shown)) > 1:  # of the layers that v may be made by
        shown = [one for one in shown if all(map(_has_context, after[id(one)]))]
    return shown


def _has_context(one: Traced) -> bool:
    return one.departure is not None and CONTEXT in one.departure.right


def _pairs(pipeline: Pipeline, single: list[Variant], begun: State, one: Traced) -> Iterator[tuple[Variant, Variant]]:
    """Two mistakes in different stages, where the attempt computes what the first of them makes."""
    names = list(pipeline.stages)
    places = {id(variant): [names.index(stage) for stage in variant.stages] for variant in single}
    for first in single:
        later = [other for other in single if min(places[id(other)]) > max(places[id(first)])]
        if later and _is_made_so(pipeline, first, names[max(places[id(first)])], begun, one):
            yield from ((first, other) for other in later)


def _is_made_so(pipeline: Pipeline, variant: Variant, last: str, begun: State, one: Traced) -> bool:
    """Whether the attempt computes the q, k and v that there are after the stage `last` of a mistake, in any order."""
    names = list(pipeline.stages)
    stages = {name: variant.stages.get(name, pipeline.stages[name]) for name in names[: names.index(last) + 1]}
    try:
        state = replace(pipeline, stages=stages, variants=(), beside={}, ways=()).call(begun)
    except (RuntimeError, IndexError, ValueError):  # a mistake that raises on this probe
        return False
    made = [getattr(state, name, None) for name in ("q", "k", "v")]
    return all(is_computed(one.steps, partial(has_numbers, part)) for part in made if isinstance(part, Tensor))


def _shows_inputs(pipeline: Pipeline, made: Pipeline, begun: State, one: Traced) -> bool:
    """Whether the attempt computes q, k and v as `made` does, and not the right ones where they differ."""
    try:
        wrong, right = seen(made, begun), seen(pipeline, begun)
    except (RuntimeError, IndexError, ValueError):  # a mistake that raises on this probe
        return False
    names = [name for name in ("q", "k", "v") if name in wrong and name in right]
    differ = [name for name in names if not _like(right[name])((wrong[name],))]
    ends = one.departure is None or one.departure.ends
    if ends and any(_like(wrong[name])((wrong[other],)) for name in differ for other in names if other != name):
        return False  # what is made once may have one use, where the code does not reach the other
    return (
        bool(differ)
        and not any(is_computed(one.steps, _like(right[name])) for name in differ)
        and all(is_computed(one.steps, _like(wrong[name])) for name in names)
    )


def _like(one: Tensor) -> Callable[[tuple[Tensor, ...]], bool]:
    """Whether tensors are this q, k or v, laid out in any way."""
    return partial(is_in_heads if one.dim() == 4 else has_numbers, one)


def _has_scores(one: Traced) -> bool:
    """Whether the scores are right, or the right ones times a factor."""
    return one.departure is not None and one.departure.factor is not None


def _of_scale(pipeline: Pipeline, asked: ProbeResults, followed: list[Traced]) -> InPart | None:
    """The mistake in the scale, where the scores of every probe are the right ones times a factor.

    Where the factors are those of no known mistake, it is `scale.other`.
    """
    departed = [one.departure for one in followed if one.departure is not None]
    factors = [one.factor for one in departed if one.factor is not None]
    wrong = {place for place, factor in enumerate(factors) if factor != 1}
    if len(factors) < len(followed) or not _shows_without_mask(asked, wrong) or "scale" not in pipeline.stages:
        return None
    if not any(_GROWS.search(step.operation) for one in followed for step in one.steps):
        return None  # the largest of the scores, say: no scale changes which it is
    seen_plainly = sorted(wrong, key=lambda place: getattr(asked.begun[place], "keep", None) is not None)
    line = departed[seen_plainly[0]].wrong_line  # where no mask has been put on them yet
    for variant in pipeline.variants:
        if set(variant.stages) == {"scale"} and all(map(partial(_scales, pipeline, variant), asked.begun, factors)):
            return _with(pipeline, (variant,), asked, line)
    for chosen in _of_another_number(pipeline):
        if all(map(partial(_scales, pipeline, chosen[0]), asked.begun, factors)):
            return _with(pipeline, chosen, asked, line)

    def scale_by_another_number(state: State) -> None:
        pipeline.stages["scale"](state)
        state.scores = state.scores * state.factor

    other = Variant(id="scale.other", stages={"scale": scale_by_another_number})
    begun = [State(**vars(state), factor=factor) for state, factor in zip(asked.begun, factors, strict=True)]
    return _with(pipeline, (other,), replace(asked, begun=begun), line)


_GROWS = re.compile(r"softmax|^exp2?_?$|sigmoid|logsumexp")  # with the size of the scores

# Mistakes in the number whose root the scores are divided by; and what else can be wrong with that division.
_NUMBERS = ("scale.embed_dim", "scale.value_dim", "scale.key_length", "scale.heads", "scale.kv_width")
_FORMS = (("scale.no_sqrt", 2), ("scale.inverted", -1), ("scale.inverted", -2))  # divided by this power of the root


def _of_another_number(pipeline: Pipeline) -> Iterator[tuple[Variant, Variant]]:
    """Two mistakes in one scale: another number than the head size, and no root of it, or multiplied by it."""
    for variant in pipeline.variants:
        if variant.id in _NUMBERS and set(variant.stages) == {"scale"}:
            for form, power in _FORMS:
                stage = partial(_scale_by_power, variant.stages["scale"], power)
                yield Variant(id=variant.id, stages={"scale": stage}), Variant(id=form, stages={})


def _scale_by_power(by_root: Stage, power: int, state: State) -> None:
    """The scores divided by a power of the root that `by_root` divides them by."""
    scores = state.scores
    by_root(state)
    state.scores = scores / (scores.norm() / state.scores.norm()) ** power


def _scales(pipeline: Pipeline, variant: Variant, begun: State, factor: float) -> bool:
    """Whether a mistake multiplies the right scores by this factor."""
    scores = seen(pipeline, begun)[SCORES] * factor
    return along_keys(SCORES, scores).is_it((seen(_made(pipeline, (variant,)), begun)[SCORES],))


def _of_weights(pipeline: Pipeline, asked: ProbeResults, followed: list[Traced]) -> InPart | None:
    """The one smallest set of mistakes whose weights the attempt mixes values by, on every probe that tells."""
    if "mix" not in pipeline.stages or not asked.begun:
        return None
    if not {SCORES, WEIGHTS, CONTEXT} <= seen(pipeline, asked.begun[0]).keys():  # a mix of results, say
        return None
    probes = [_Probe.of(pipeline, begun, one) for begun, one in zip(asked.begun, followed, strict=True)]
    if not any(probe.is_wrong and probe.tells for probe in probes):
        return None
    probes.sort(
        key=lambda probe: (not (probe.is_wrong and probe.tells), getattr(probe.begun, "keep", None) is not None)
    )
    to_weights = _to_weights(pipeline)
    for count in range(1, MOST + 1):
        tried = outcomes(to_weights, probes[0].begun, count, None)
        first = [one.chosen for one in tried if not isinstance(one.result, str) and probes[0].shows(one.result)]
        shown = [chosen for chosen in first if all(_gives(to_weights, chosen, probe) for probe in probes[1:])]
        if (
            len({_names(chosen) for chosen in shown}) > 1
        ):  # a softmax over the queries, and q and k swapped, are each other's transpose
            exactly = partial(_gives, to_weights, exactly=True)
            shown = [chosen for chosen in shown if all(exactly(chosen, probe) for probe in probes)]
        if shown:
            found = [_with(pipeline, each, asked, None) for each in shown]
            return found[0] if len(_ids(found)) == 1 else None
    return None


def _to_weights(pipeline: Pipeline) -> Pipeline:
    """The pipeline up to the weights, which are its result."""

    def take_weights(state: State) -> None:
        state.out = state.weights

    names = list(pipeline.stages)
    stages = {name: pipeline.stages[name] for name in names[: names.index("mix")]} | {"mix": take_weights}
    before = tuple(one for one in pipeline.variants if set(one.stages) <= stages.keys() - {"mix"})
    return replace(pipeline, stages=stages, variants=before, beside={}, ways=())


@dataclass(frozen=True, kw_only=True)
class _Probe:
    """A probe: the weights that the attempt takes, which are the right ones unless they are wrong, and the right scores.

    `tells`: whether weights have other sizes than the result, which comes after them.
    """

    begun: State
    is_wrong: bool
    last: tuple[Tensor, ...]
    right_scores: Tensor
    tells: bool
    squares: float  # the sum of the squares of the weights that it takes: the plain sum is the number of rows

    @classmethod
    def of(cls, pipeline: Pipeline, begun: State, one: Traced) -> _Probe:
        right = seen(pipeline, begun)
        tells = right[WEIGHTS].numel() != right[CONTEXT].numel()
        is_wrong = one.departure is not None and one.departure.weights_may_be_wrong
        last = one.last_like(right[WEIGHTS]) if is_wrong else (right[WEIGHTS],)
        squares = sum(float(one.square().sum()) for one in last)
        return cls(begun=begun, is_wrong=is_wrong, last=last, right_scores=right[SCORES], tells=tells, squares=squares)

    def shows(self, made: State, *, exactly: bool = False) -> bool:
        """Whether the attempt mixes by these weights.

        Scores that are taken for weights show nothing, whatever they are multiplied by: an unknown softmax may come after
        them.
        """
        weights = made.out
        if not self.tells:
            return True
        apart = abs(float(weights.square().sum()) - self.squares)
        if ALIKE * weights.numel() * (1 + self.squares) < apart:  # most end here; not where one of them is NaN
            return False
        if not (
            same(self.last, weights) if exactly else bool(self.last) and along_keys(WEIGHTS, weights).is_it(self.last)
        ):
            return False
        return not any(_are_scores(weights, scores) for scores in (made.scores, self.right_scores))


def _gives(to_weights: Pipeline, chosen: tuple[Variant, ...], probe: _Probe, *, exactly: bool = False) -> bool:
    """Whether the attempt mixes by the weights that these mistakes make."""
    made = outcome(to_weights, probe.begun, chosen)
    return not isinstance(made, str) and probe.shows(made, exactly=exactly)


def _ids(found: list[InPart]) -> set[frozenset[str]]:
    return {frozenset(one.lines) for one in found}


def _names(chosen: tuple[Variant, ...]) -> frozenset[str]:
    return frozenset(variant.id for variant in chosen)


def _are_scores(weights: Tensor, scores: Tensor) -> bool:
    return along_keys(SCORES, scores).is_it((weights,)) or factor_between([weights], scores) is not None


def _shows_without_mask(asked: ProbeResults, wrong: set[int]) -> bool:
    """Whether one of these probes has no mask, or none has: what shows with a mask alone is a mistake of the mask."""
    plain = {place for place, state in enumerate(asked.begun) if getattr(state, "keep", None) is None}
    return bool(wrong & plain if plain else wrong)


def _made(pipeline: Pipeline, chosen: tuple[Variant, ...]) -> Pipeline:
    """The pipeline that makes these mistakes."""
    stages = {name: stage for variant in chosen for name, stage in variant.stages.items()}
    others = tuple(one for one in pipeline.variants if not set(one.stages) & set(stages))
    return replace(pipeline, stages={**pipeline.stages, **stages}, variants=others)


def _with(pipeline: Pipeline, chosen: tuple[Variant, ...], asked: ProbeResults, line: int | None) -> InPart:
    lines: dict[str, int | None] = {variant.id: line for variant in chosen}
    return InPart(lines=lines, pipeline=_made(pipeline, chosen), asked=asked)
