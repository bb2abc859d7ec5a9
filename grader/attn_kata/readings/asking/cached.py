"""Code that is called with one token after the other and keeps earlier keys: the ways in which its cache is wrong."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Stage, State, Variant, variants
from attn_kata.readings.asking.causal import Rule, keeps, lower

# What a token sees: its own key, and which of the earlier ones.
_SEEN: tuple[tuple[str, Rule], ...] = (
    ("cache.not_used", lambda i, j, ahead: j == i + ahead),
    ("cache.kept_from_start", lambda i, j, ahead: (j == i + ahead) | ((j == 0) & (i + ahead > 0))),
    ("cache.top_left", lambda i, j, ahead: j == 0 * i),
    ("cache.token_lost", lambda i, j, ahead: (j == i + ahead) | (j < i + ahead - 1)),
    ("cache.token_lost", lambda i, j, ahead: (j == i + ahead) | ((j > 0) & (j < i + ahead))),
    ("cache.new_only", lambda i, j, ahead: (j == i + ahead) | (j == i + ahead - 1)),
    ("cache.token_lost", lambda i, j, ahead: (j < i + ahead) | ((j == 0) & (i + ahead == 0))),
)


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

    rules = (*_SEEN, *_of_chunks(chunks)) if chunks > 1 else _SEEN
    seen = [one for id, rule in rules for one in variants(id, {hides: sees(rule)})]
    mixed = variants(
        "cache.parts_mixed",
        {"score": scored_by_values(_earlier), "mix": mixed_from_keys(_earlier)},
        {"score": scored_by_values(_earlier)},
        {"mix": mixed_from_keys(_earlier)},
        {"score": scored_by_values(_every_other), "mix": mixed_from_keys(_every_other)},  # exchanged at each call
    )
    return (*seen, *mixed, *variants("cache.added", {"mix": mixed_from_sums}))


def _of_chunks(size: int) -> tuple[tuple[str, Rule], ...]:
    """What the tokens of a chunk see: those of the first keys, or all of the chunk."""

    def place(i: Tensor) -> Tensor:  # in its chunk
        return torch.where(i == 0, 0, (i - 1) % size)

    return (
        ("cache.top_left", lambda i, j, ahead: j <= place(i + ahead)),
        (
            "cache.chunk_not_causal",
            lambda i, j, ahead: j <= i + ahead + (i + ahead > 0) * (size - 1 - place(i + ahead)),
        ),
    )


def _earlier(i: Tensor, j: Tensor, ahead: int) -> Tensor:
    return j < i + ahead


def _every_other(i: Tensor, j: Tensor, ahead: int) -> Tensor:
    return (j < i + ahead) & ((i + ahead - j) % 2 == 1)


def _told(scores: Tensor, rule: Rule) -> Tensor:
    """(Tq, Tk), where the rule holds for query and key."""
    return keeps(scores.shape[-2], scores.shape[-1], rule)
