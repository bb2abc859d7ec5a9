"""Scores (..., Tq, Tk) before the softmax, and their scale: sqrt(D) is right (Vaswani et al., 2017, section 3.2.1)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from attn_kata.diagnosis.pipeline import Stage, State


def score(state: State) -> None:
    """q kᵀ: (..., Tq, Tk)."""
    state.scores = state.q @ state.k.transpose(-2, -1)


def score_swapped(state: State) -> None:
    """k qᵀ: (..., Tk, Tq). A later stage raises where the lengths differ."""
    state.scores = state.k @ state.q.transpose(-2, -1)


def score_of_queries(state: State) -> None:
    """q qᵀ: (..., Tq, Tq). A later stage raises where the lengths differ."""
    state.scores = state.q @ state.q.transpose(-2, -1)


def score_of_keys(state: State) -> None:
    """k kᵀ: (..., Tk, Tk)."""
    state.scores = state.k @ state.k.transpose(-2, -1)


def score_not_transposed(state: State) -> None:
    """q k: raises RuntimeError but where there are as many keys as features."""
    state.scores = state.q @ state.k


def score_transposed_when_square(state: State) -> None:
    """q kᵀ, transposed where there are as many queries as keys, so that nothing raises."""
    score(state)
    if state.scores.shape[-2] == state.scores.shape[-1]:
        state.scores = state.scores.transpose(-2, -1)


def score_reshaped(state: State) -> None:
    """The keys reshaped to (..., D, Tk) where a transpose is meant: each column holds pieces of several keys."""
    state.scores = state.q @ state.k.reshape(*state.k.shape[:-2], state.k.shape[-1], state.k.shape[-2])


def score_of_keys_reshaped(state: State) -> None:
    """k qᵀ reshaped to (..., Tq, Tk) where a transpose is meant."""
    state.scores = (state.k @ state.q.transpose(-2, -1)).reshape(*state.q.shape[:-1], state.k.shape[-2])


def scale(by: Callable[[State], float], said: str = "") -> Stage:
    """The stage that divides the scores by `by(state)`; `said` describes it."""

    def stage(state: State) -> None:
        state.scores = state.scores / by(state)

    stage.__doc__ = said
    return stage


def root_head_dim(state: State) -> float:
    """sqrt(D), D the last size of q."""
    return math.sqrt(state.q.shape[-1])


scale_by_head_dim = scale(root_head_dim, "The scores divided by sqrt(D): right.")
scale_by_value_dim = scale(lambda state: math.sqrt(state.v.shape[-1]), "The scores divided by sqrt(Dv).")
scale_by_embed_dim = scale(lambda state: math.sqrt(state.q.shape[-1] * state.H), "The scores divided by sqrt(H * D).")
scale_by_key_length = scale(lambda state: math.sqrt(state.k.shape[-2]), "The scores divided by sqrt(Tk).")
scale_by_query_length = scale(lambda state: math.sqrt(state.q.shape[-2]), "The scores divided by sqrt(Tq).")
scale_by_heads = scale(lambda state: math.sqrt(state.H), "The scores divided by sqrt(H).")
scale_by_number_split = scale(
    lambda state: math.sqrt(state.q.shape[1]),
    "The scores divided by the root of the number of heads that q is split into.",
)
scale_no_sqrt = scale(lambda state: float(state.q.shape[-1]), "The scores divided by D.")
scale_inverted = scale(lambda state: 1 / root_head_dim(state), "The scores multiplied by sqrt(D).")
scale_inverted_embed_dim = scale(
    lambda state: 1 / math.sqrt(state.q.shape[-1] * state.H), "The scores multiplied by sqrt(H * D)."
)
scale_squared_inverted = scale(lambda state: 1 / float(state.q.shape[-1]), "The scores multiplied by D.")


def scale_floor_division(state: State) -> None:
    """scores // sqrt(D): rounded down to whole numbers."""
    state.scores = torch.floor(state.scores / root_head_dim(state))


def scale_weights(state: State) -> None:
    """The weights divided by sqrt(D), after the softmax."""
    state.weights = state.weights / root_head_dim(state)


def scale_weights_by_embed_dim(state: State) -> None:
    """The weights divided by sqrt(H * D), after the softmax, as in a well-known vision transformer."""
    state.weights = state.weights / math.sqrt(state.q.shape[-1] * state.H)
