"""Code that hides later keys by itself: the stages of the diagnosis, right and wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Stage, State, Variant, variants

# The same edit makes every reference without a mask hide later keys.
_SOFTMAX = "scores.softmax(dim=-1)"
_HIDING = (
    "scores.masked_fill(~scores.new_ones(scores.shape[-2:]).tril(scores.shape[-1] - scores.shape[-2]).bool(), "
    'float("-inf")).softmax(dim=-1)'
)

Rule = Callable[[Tensor, Tensor, int], Tensor]

_WRONG: tuple[tuple[str, Rule], ...] = (
    ("mask.shifted", lambda i, j, ahead: j < i + ahead),
    ("mask.shifted", lambda i, j, ahead: j <= i + ahead + 1),
    ("mask.upper_triangle", lambda i, j, ahead: j >= i + ahead),
    ("mask.inverted", lambda i, j, ahead: j > i + ahead),
    ("mask.lost", lambda i, j, ahead: j >= 0 * i),
)


def reference(source: str) -> str:
    """The source of a reference without a mask, with later keys hidden. Raises ValueError where the edit does not fit."""
    if source.count(_SOFTMAX) != 1:
        raise ValueError(f"the reference has {source.count(_SOFTMAX)} times {_SOFTMAX!r}")
    return source.replace(_SOFTMAX, _HIDING)


def keeps(queries: int, keys: int, rule: Rule) -> Tensor:
    """(Tq, Tk), True where the rule keeps key j for query i."""
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    return rule(i, j, keys - queries).expand(queries, keys)


def lower(queries: int, keys: int) -> Tensor:
    """(Tq, Tk), True for a query's own position and earlier ones; the queries are the last positions."""
    return keeps(queries, keys, lambda i, j, ahead: j <= i + ahead)


def wrong_senses(pipeline: Pipeline) -> tuple[Variant, ...]:
    """The wrong triangles, for a pipeline whose mask is `state.keep`."""
    if "sense" not in pipeline.stages:
        return ()

    def moved(rule: Rule) -> Stage:
        def stage(state: State) -> None:
            queries, keys = state.keep.shape[-2:]
            own = keeps(queries, keys, rule)
            state.keep = own if state.handed is None else state.handed & own

        return stage

    def alone(state: State) -> None:
        state.keep = lower(*state.keep.shape[-2:])

    def handed_alone(state: State) -> None:
        state.keep = state.handed

    def filled(state: State) -> None:
        own = lower(*state.scores.shape[-2:])
        s.mask(state)
        s.fill(state, own, 0.0)

    def filled_first(state: State) -> None:
        s.fill(state, lower(*state.scores.shape[-2:]), 0.0)
        s.mask(state)

    wrong = [one for id, rule in _WRONG for one in variants(id, {"sense": moved(rule)})]
    zeros = [{"sense": handed_alone, "mask": stage} for stage in (filled, filled_first)]
    return (*wrong, *variants("mask.lost", {"sense": alone}), *variants("mask.zero_fill", *zeros))


def wrong_triangles(pipeline: Pipeline) -> tuple[Variant, ...]:
    """The wrong triangles, for a pipeline that is causal by its contract; and a given one inverted."""

    def moved(rule: Rule) -> Stage:
        def stage(state: State) -> None:
            queries, keys = state.keep.shape[-2:]
            state.keep = keeps(queries, keys, rule)
            s.mask(state)

        return stage

    def inverted(state: State) -> None:
        s.fill(state, ~state.keep, -1e9)  # the last query sees nothing, so that the value of the fill does not matter

    wrong = [one for id, rule in _WRONG if id != "mask.lost" for one in variants(id, {"mask": moved(rule)})]
    return (*wrong, *variants("mask.inverted", {"mask": inverted}))


def hidden_by_itself(pipeline: Pipeline) -> Pipeline:
    """A pipeline without a mask, with one of its own before the softmax, and the ways in which it is wrong."""

    def by(rule: Rule, value: float = float("-inf")) -> Stage:
        return lambda state: s.fill(state, keeps(state.scores.shape[-2], state.scores.shape[-1], rule), value)

    def weigh(state: State) -> None:
        state.weights = state.weights * lower(state.scores.shape[-2], state.scores.shape[-1])

    right = by(lambda i, j, ahead: j <= i + ahead)
    stages: dict[str, Stage] = {}
    for name, stage in pipeline.stages.items():
        if name == "normalise":
            stages["own_mask"] = right
        stages[name] = stage
        if name == "normalise":
            stages["own_remask"] = s.nothing
    wrong = [one for id, rule in _WRONG for one in variants(id, {"own_mask": by(rule)})]
    wrong += variants("mask.zero_fill", {"own_mask": by(lambda i, j, ahead: j <= i + ahead, 0.0)})
    wrong += variants("mask.after_softmax", {"own_mask": s.nothing, "own_remask": weigh})
    kept = [one for one in pipeline.variants if one.id != "mask.causal"]
    return replace(pipeline, stages=stages, variants=(*kept, *wrong))
