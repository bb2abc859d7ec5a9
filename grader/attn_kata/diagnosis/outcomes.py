"""What sets of mistakes give on a probe: outcomes, which a pipeline keeps, because the next search asks for the same."""

from __future__ import annotations

import ctypes
import functools
import itertools
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, Variant
from attn_kata.diagnosis.stages.masks import weigh_later

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
            "expects split_sizes to sum exactly to",
            "Given normalized_shape=",
            "don't multiply up to the size of dim",
        )
    )
)


def about_shapes(message: str) -> bool:
    """Whether an exception's message, or its kind, is about the shapes of tensors."""
    return _SHAPES.search(message) is not None


def error_kind(message: str) -> str:
    """The kind of a torch error message; an unknown message is its own kind."""
    return next((kind for words, kind in _ERRORS.items() if words in message or message == kind), message)


def tensors(output: Any) -> tuple[Tensor, ...]:
    """The tensors of an output that may be in parts."""
    return tuple(part for part in (output if isinstance(output, tuple) else (output,)) if isinstance(part, Tensor))


def outcome(pipeline: Pipeline, begun: State, chosen: tuple[Variant, ...]) -> State | str:
    """The pipeline's result with these mistakes made, or the kind of error that they raise."""
    if pipeline.ask is not None:
        try:
            return pipeline.result(begun, chosen, after=weigh_later)
        except (RuntimeError, IndexError, ValueError) as error:
            return error_kind(str(error))
    return _advance(pipeline, begun, list(pipeline.stages), chosen)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a set of mistakes gives on the first probe: a state, or the kind of error that it raises."""

    chosen: tuple[Variant, ...]
    result: State | str

    @functools.cached_property
    def holds_nan(self) -> bool:
        """Whether the result holds a NaN."""
        return not isinstance(self.result, str) and any(bool(part.isnan().any()) for part in tensors(self.result.out))


class Outcomes:
    """The outcomes of all sets of one size on one first probe, in the order of the search."""

    def __init__(self, made: Iterable[tuple[tuple[Variant, ...], State | str]]) -> None:
        self._all = [Outcome(chosen=chosen, result=_kept(result)) for chosen, result in made]

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def near(self, got: Tensor, rival: float) -> Iterator[Outcome]:
        """Those whose first tensor may be nearer to `got` than `rival`.

        All are compared at once, because nearly every one is ruled out here: by its shape, or by its largest difference
        relative to 1 + its largest number, which is never more than the distance. NaN and rows to skip rule nothing out.
        """
        apart: set[int] = set()
        for shape, (places, numbers, scale) in self._by_shape.items():
            if shape != got.shape:
                apart.update(places)
                continue
            least = (numbers - got.detach().reshape(-1).to(torch.float64)).abs().amax(dim=1) / scale
            told = ((least >= rival) & (least < float("inf"))).tolist()
            apart.update(place for place, is_apart in zip(places, told, strict=True) if is_apart)
        return (outcome for place, outcome in enumerate(self._all) if place not in apart)

    @functools.cached_property
    def _by_shape(self) -> dict[torch.Size, tuple[list[int], Tensor, Tensor]]:
        """By shape of the first tensor: the places of outcomes, their numbers (n, numel), and 1 + the largest of each (n,)."""
        places: dict[torch.Size, list[int]] = {}
        numbers: dict[torch.Size, list[Tensor]] = {}
        for place, outcome in enumerate(self._all):
            if isinstance(outcome.result, str) or getattr(outcome.result, "empty", None) is not None:
                continue
            first = tensors(outcome.result.out)[:1]
            if first and first[0].numel() and not bool(first[0].isnan().any()):
                places.setdefault(first[0].shape, []).append(place)
                numbers.setdefault(first[0].shape, []).append(first[0].detach().reshape(-1).to(torch.float64))
        stacked = {shape: torch.stack(some) for shape, some in numbers.items()}
        return {shape: (places[shape], all, 1 + all.abs().amax(dim=1)) for shape, all in stacked.items()}


T = TypeVar("T")
_known: weakref.WeakKeyDictionary[Pipeline, dict[object, Any]] = weakref.WeakKeyDictionary()


def outcomes(
    pipeline: Pipeline, begun: State, count: int, most: int | None, telling: frozenset[int] | None = None
) -> Outcomes:
    """Those of the sets of `count` variants, at most the first `most`, on a probe with this first state.

    With `telling`, only of those sets with one of these variants, by `id()`.

    They depend on nothing but the arguments, and probes are seeded: they are kept.
    """
    made = functools.partial(_sets, pipeline, begun, count, telling)
    return kept(pipeline, (count, most, telling, begun), lambda: Outcomes(itertools.islice(made(), most)))


def kept(pipeline: Pipeline, asked: tuple[Any, ...], make: Callable[[], T]) -> T:
    """What `make` gives, which depends on nothing but the pipeline and the content of `asked`.

    Whoever diagnoses many attempts in one process, as the check of a kata does, has it computed once. It is kept as long as
    the pipeline is.
    """
    known, key = _known.setdefault(pipeline, {}), _content(asked)
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found


class Known(State):
    """A first state that stands for all with its content, so that nothing has to read its numbers again."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def known(pipeline: Pipeline, begun: list[State]) -> list[State]:
    """First states as the pipeline knows them: the same objects for the same content."""
    return kept(pipeline, ("known", begun), lambda: [Known(**vars(state)) for state in begun])


def known_outcome(pipeline: Pipeline, begun: State, chosen: tuple[Variant, ...]) -> State | str:
    """What the search reads of `outcome`, kept. `begun` is one of the `known`."""
    asked = ("outcome", begun, tuple(map(id, chosen)))
    return kept(pipeline, asked, lambda: _kept(outcome(pipeline, begun, chosen)))


def _content(value: Any) -> object:
    """Equal for values that a pipeline computes the same from. What is none of these is equal to itself alone."""
    if isinstance(value, Known):
        return value
    if isinstance(value, Tensor):
        whole = value.detach().contiguous()
        return value.dtype, value.shape, value.stride(), ctypes.string_at(whole.data_ptr(), whole.nbytes)
    if isinstance(value, dict):
        return tuple((name, _content(part)) for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_content, value))
    if isinstance(value, (State, Probe)):
        return type(value), _content(vars(value))
    return type(value), value


def _kept(result: State | str) -> State | str:
    """What the search reads of a result."""
    if isinstance(result, str):
        return result
    return State(**{name: value for name, value in vars(result).items() if name in ("out", "empty", "scores")})


def _sets(
    pipeline: Pipeline, begun: State, count: int, telling: frozenset[int] | None
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
    places = [_first(variant, place) for variant in ordered]
    if pipeline.ask is not None:
        for chosen in itertools.combinations(ordered, count):
            taken = [name for variant in chosen for name in variant.stages]
            if len(taken) == len(set(taken)) and tells(chosen, telling):
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
        reached: State | str = state
        for index in range(start, len(ordered)):
            variant = ordered[index]
            if not taken.isdisjoint(variant.stages):
                continue
            together = (*chosen, variant)
            if len(together) == count and not tells(together, telling):
                continue
            first = places[index]  # never before that of the variants before it
            if first > done and not isinstance(reached, str):
                reached, done = _advance(pipeline, reached, names[done:first], chosen), first
            if not isinstance(reached, str):
                yield from walk(reached, first, together, index + 1)
            elif len(together) == count:
                yield together, reached  # it raises before the last mistake

    yield from walk(begun, 0, (), 0)


def tells(chosen: tuple[Variant, ...], telling: frozenset[int] | None) -> bool:
    """Whether one of the set is among these, by `id()`. Without any named, always."""
    return telling is None or any(id(variant) in telling for variant in chosen)


def _first(variant: Variant, place: dict[str, int]) -> int:
    return min(place[name] for name in variant.stages)


def _advance(pipeline: Pipeline, state: State, names: list[str], chosen: tuple[Variant, ...]) -> State | str:
    """The state after the stages of these names, with the chosen mistakes made, or the kind of error that one raises."""
    replaced = {name: stage for variant in chosen for name, stage in variant.stages.items()}
    reached = State(**vars(state))
    set_so_far = vars(reached)
    try:
        for name in names:
            (replaced.get(name) or pipeline.stages[name])(reached)
            if "masking" in set_so_far or "mask_later" in set_so_far:  # a call for each stage would take long
                weigh_later(reached)
    except (RuntimeError, IndexError, ValueError) as error:
        return error_kind(str(error))
    return reached
