"""Code that is called with one token after the other and keeps earlier keys: the ways in which its cache is wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Stage, State, Variant, variants
from attn_kata.readings.asking.causal import Rule, keeps, lower


def wrong_caches(pipeline: Pipeline, chunks: int) -> tuple[Variant, ...]:
    """The mistakes, for a pipeline that hides later keys by itself, or by `state.keep`.

    `chunks`: how many tokens a call gets after that of the first token.
    """
    hides = "own_mask" if "own_mask" in pipeline.stages else "sense"
    if hides not in pipeline.stages:
        return ()

    def sees(rule: Rule) -> Stage:
        def stage(state: State) -> None:
            keep = keeps(state.scores.shape[-2], state.scores.shape[-1], rule)
            if hides == "own_mask":
                s.fill(state, keep, float("-inf"))
            else:
                state.keep = keep

        return stage

    score, mix = pipeline.stages["score"], pipeline.stages["mix"]

    def scored_by_values(which: Rule) -> Stage:
        """The scores of the tokens that the rule tells are those of their values."""

        def stage(state: State) -> None:
            score(state)
            of_values = copy.copy(state)
            of_values.k = state.v
            score(of_values)
            state.scores = torch.where(_told(state.scores, which), of_values.scores, state.scores)

        return stage

    def mixed_from_keys(which: Rule) -> Stage:
        """Of the tokens that the rule tells the keys are mixed."""

        def stage(state: State) -> None:
            of_keys, others = copy.copy(state), copy.copy(state)
            told = _told(state.weights, which)
            of_keys.v, of_keys.weights = state.k, state.weights * told
            others.weights = state.weights * ~told
            mix(of_keys)
            mix(others)
            state.out = of_keys.out + others.out

        return stage

    def mixed_from_sums(state: State) -> None:
        """One key is left, whose value is the sum of all."""
        mix(state)
        state.out = (torch.ones_like(state.weights) * lower(*state.weights.shape[-2:])) @ state.v

    seen = [one for id, rule in _seen(max(chunks, 1)) for one in variants(id, {hides: sees(rule)})]
    mixed = variants(
        "cache.parts_mixed",
        {"score": scored_by_values(_earlier), "mix": mixed_from_keys(_earlier)},
        {"score": scored_by_values(_earlier)},
        {"mix": mixed_from_keys(_earlier)},
        {"score": scored_by_values(_every_other), "mix": mixed_from_keys(_every_other)},  # exchanged at each call
    )
    return (*seen, *mixed, *variants("cache.added", {"mix": mixed_from_sums}))


def _seen(size: int) -> Iterator[tuple[str, Rule]]:
    """What a token sees: of its own call, the tokens up to itself, and which of the earlier ones. The first call has one."""

    def begin(i: Tensor) -> Tensor:
        """The first token of the call."""
        return torch.where(i == 0, 0, i - (i - 1) % size)

    def own(i: Tensor, j: Tensor) -> Tensor:
        return (j >= begin(i)) & (j <= i)

    # The queries are the last positions: `i + ahead` is the place of one among the keys.
    yield "cache.not_used", lambda i, j, ahead: own(i + ahead, j)
    yield "cache.token_lost", lambda i, j, ahead: own(i + ahead, j)  # the last one, where each call has one
    yield "cache.new_only", lambda i, j, ahead: (j >= begin(i + ahead) - size) & (j <= i + ahead)
    yield "cache.kept_from_start", lambda i, j, ahead: own(i + ahead, j) | ((j == 0) & (i + ahead > 0))
    yield "cache.top_left", lambda i, j, ahead: j <= i + ahead - begin(i + ahead)
    yield "cache.token_lost", lambda i, j, ahead: own(i + ahead, j) | (j < begin(i + ahead) - 1)
    yield "cache.token_lost", lambda i, j, ahead: own(i + ahead, j) | ((j > 0) & (j < begin(i + ahead)))
    yield "mask.shifted", lambda i, j, ahead: (j < i + ahead) | ((j == 0) & (i + ahead == 0))
    if size > 1:
        yield (
            "cache.chunk_not_causal",
            lambda i, j, ahead: (j < begin(i + ahead) + size) & ((j == 0) | (i + ahead > 0)),
        )


def _earlier(i: Tensor, j: Tensor, ahead: int) -> Tensor:
    return j < i + ahead


def _every_other(i: Tensor, j: Tensor, ahead: int) -> Tensor:
    return (j < i + ahead) & ((i + ahead - j) % 2 == 1)


def _told(scores: Tensor, rule: Rule) -> Tensor:
    """(Tq, Tk), where the rule holds for query and key."""
    return keeps(scores.shape[-2], scores.shape[-1], rule)
