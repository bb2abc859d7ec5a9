"""Weights (..., Tq, Tk): the softmax, dropout with probability `p` (Srivastava et al., 2014), and the mix of values."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Stage, State


def softmax_over(dim: int | None) -> Stage:
    """The stage that takes the softmax of the scores along `dim`.

    None is the dimension that `torch.nn.functional.softmax` takes where no dim is given: 0 for 0, 1 and 3 dimensions, else 1.
    """

    def stage(state: State) -> None:
        rank = state.scores.dim()
        guessed = 0 if rank in (0, 1, 3) else 1
        state.weights = state.scores.softmax(dim=guessed if dim is None else dim)

    stage.__doc__ = "Softmax where no dim is given." if dim is None else f"Softmax along dimension {dim} of the scores."
    return stage


softmax_over_keys = softmax_over(-1)
softmax_over_queries = softmax_over(-2)


def softmax_over_heads(state: State) -> None:
    """Softmax over the dimension before the queries, which are the heads. Raises IndexError for fewer than 3 dimensions."""
    if state.scores.dim() < 3:
        raise IndexError("Dimension out of range")
    state.weights = state.scores.softmax(dim=-3)


def softmax_over_lead(state: State) -> None:
    """Softmax over all dimensions before the queries together, as after folding batch and heads into dimension 0."""
    state.weights = state.scores.reshape(-1, *state.scores.shape[-2:]).softmax(0).view_as(state.scores)


def softmax_summed_over(dim: int) -> Stage:
    """The stage of a softmax written out: right up to the sum, which is taken along `dim` of the scores."""

    def stage(state: State) -> None:
        highest = state.scores.amax(-1, keepdim=True)
        raised = (state.scores - highest.masked_fill(highest == float("-inf"), 0.0)).exp()
        state.weights = raised / raised.sum(dim, keepdim=True)

    stage.__doc__ = f"The maximum over the keys is subtracted, and the sum is taken along dimension {dim}."
    return stage


def softmax_over_everything(state: State) -> None:
    """One softmax over queries and keys together."""
    state.weights = state.scores.flatten(-2).softmax(-1).view_as(state.scores)


def softmax_over_one(state: State) -> None:
    """A softmax along a dimension of size 1: each weight is 1, and nan where a mask has made a score -inf."""
    state.weights = state.scores.unsqueeze(-1).softmax(-1).squeeze(-1)


def softmax_ones(state: State) -> None:
    """The same, where a mask fills with a finite number, or there is none."""
    state.weights = torch.ones_like(state.scores)


def softmax_missing(state: State) -> None:
    """Scores used as weights; a masked score, -inf, becomes 0."""
    state.weights = state.scores.masked_fill(state.scores == float("-inf"), 0.0)


def softmax_missing_unmasked(state: State) -> None:
    """Scores used as weights; a masked score stays -inf."""
    state.weights = state.scores


def softmax_if_masked(state: State) -> None:
    """Softmax where there is a mask, and else the scores as they are: the softmax stands inside of `if mask is not None`."""
    state.weights = state.scores if state.keep is None else state.scores.softmax(dim=-1)


def softmax_sigmoid(state: State) -> None:
    """Sigmoid instead of softmax."""
    state.weights = state.scores.sigmoid()


def softmax_of(function: Callable[[Tensor], Tensor]) -> Stage:
    """The stage that divides `function` of the scores, and not their exponentials, by the sum over the keys."""

    def stage(state: State) -> None:
        raised = function(state.scores)
        state.weights = raised / raised.sum(-1, keepdim=True)

    return stage


def softmax_not_divided(shifted: bool) -> Stage:
    """The stage that leaves out the division by the sum; `shifted` says whether the maximum is subtracted first."""

    def stage(state: State) -> None:
        highest = state.scores.amax(-1, keepdim=True)
        shift = highest.masked_fill(highest == float("-inf"), 0.0) if shifted else 0.0
        state.weights = (state.scores - shift).exp()

    return stage


def drop(state: State) -> None:
    """Dropout on the weights, in training only: `state.p`, `state.training`."""
    state.weights = torch.dropout(state.weights, state.p, _training(state))


def drop_always(state: State) -> None:
    """Dropout on the weights in eval() too."""
    state.weights = torch.dropout(state.weights, state.p, True)


def drop_after(stage: Stage) -> Stage:
    """`stage`, which makes scores, followed by dropout on them: before the softmax."""

    def wrong(state: State) -> None:
        stage(state)
        state.scores = torch.dropout(state.scores, state.p, _training(state))

    return wrong


def drop_renormalised(state: State) -> None:
    """Dropout on the weights, which are then divided by their sum."""
    state.weights = torch.dropout(state.weights, state.p, _training(state))
    state.weights = state.weights / state.weights.sum(dim=-1, keepdim=True).clamp_min(1e-12)


def renormalise(state: State) -> None:
    """Weights divided by their sum over the keys."""
    state.weights = state.weights / state.weights.sum(dim=-1, keepdim=True)


def drop_rows(state: State) -> None:
    """Whole rows of weights dropped together."""
    kept = torch.dropout(torch.ones_like(state.weights[..., :1]), state.p, _training(state))
    state.weights = state.weights * kept


def drop_output(state: State) -> None:
    """Dropout on the result instead of the weights."""
    state.out = torch.dropout(state.out, state.p, _training(state))


def _training(state: State) -> bool:
    return bool(getattr(state, "training", False))


def weights_as_result(state: State) -> None:
    """The weights (..., Tq, Tk) where the mix of the values should be."""
    state.out = state.weights


def mix(state: State) -> None:
    """weights v: (..., Tq, Dv)."""
    state.out = state.weights @ state.v


def mix_dropped_values(state: State) -> None:
    """Dropout on the values instead of the weights."""
    state.out = state.weights @ torch.dropout(state.v, state.p, _training(state))


def mix_transposed(state: State) -> None:
    """weightsᵀ v. Raises RuntimeError where there are not as many queries as keys."""
    state.out = state.weights.transpose(-2, -1) @ state.v


def mix_by(weight: Callable[[Tensor], Tensor]) -> Stage:
    """Each value times a weight of its own token (..., T), and no sum: einsum("bhqk,bhqd->bhqd", weights, v).

    The stage raises RuntimeError where there are not as many queries as keys.
    """

    def mixed(state: State) -> None:
        if state.weights.shape[-2] != state.weights.shape[-1]:
            raise RuntimeError("there are not as many queries as keys")
        state.out = weight(state.weights)[..., None] * state.v

    return mixed


def row_sums(weights: Tensor) -> Tensor:
    """The sum of the weights of each query: (..., Tq)."""
    return weights.sum(-1)


def column_sums(weights: Tensor) -> Tensor:
    """The sum of the weights of each key: (..., Tk)."""
    return weights.sum(-2)


def own_weights(weights: Tensor) -> Tensor:
    """The weight that each token has for itself: (..., T)."""
    return weights.diagonal(dim1=-2, dim2=-1)


def values_are_keys(state: State) -> None:
    """The keys mixed instead of the values."""
    state.out = state.weights @ state.k
