"""The library of stages that katas' pipelines are made of, right and wrong.

The state: `x` and `context` (inputs to project), `parameters` (by name), `q k v` (..., T, D), `keep` (bool, broadcastable to
the scores, True = may attend, or None), `scores`, `weights` (..., Tq, Tk), `out`; sizes `H` and whatever a scale names.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .pipeline import Stage, State


def nothing(state: State) -> None:
    """Leave everything as it is."""


# ------------------------------------------------------------------------------------------------------ projecting


def linear(state: State, name: str, value: Tensor) -> Tensor:
    """`value` through the layer `name` of the module's parameters, with its bias where it has one."""
    out: Tensor = value @ state.parameters[f"{name}.weight"].T
    bias = state.parameters.get(f"{name}.bias")
    return out if bias is None else out + bias


def project(q: str = "q_proj", k: str = "k_proj", v: str = "v_proj", *, swap_sources: bool = False) -> Stage:
    """Queries from `x`, keys and values from `context`, by the layers of these names."""

    def stage(state: State) -> None:
        source, context = (state.context, state.x) if swap_sources else (state.x, state.context)
        state.q, state.k, state.v = linear(state, q, source), linear(state, k, context), linear(state, v, context)

    return stage


def swap_queries_and_keys(state: State) -> None:
    """Exchange q and k, after whatever made them."""
    state.q, state.k = state.k, state.q


def across_the_batch(stage: Stage) -> Stage:
    """A stage that makes q, k and v, then has batch and time change places: attention runs over the samples."""

    def wrong(state: State) -> None:
        stage(state)
        state.q, state.k, state.v = (part.transpose(0, 1) for part in (state.q, state.k, state.v))

    return wrong


def all_tokens_together(state: State) -> None:
    """Every leading dimension folded into time: tokens attend to those of other samples and heads."""
    state.q, state.k, state.v = (part.reshape(-1, part.shape[-1]) for part in (state.q, state.k, state.v))


def context_across_the_batch(stage: Stage) -> Stage:
    """A stage that leaves k and v (B, H, Tk, D), which are then one long context for every sample, the mask with them."""

    def wrong(state: State) -> None:
        stage(state)
        state.k, state.v = (part.transpose(0, 1).flatten(1, 2)[None] for part in (state.k, state.v))
        state.keep = None if state.keep is None else state.keep.reshape(1, 1, 1, -1)

    return wrong


def apart_again(state: State) -> None:
    """The other end of `all_tokens_together`, given the shape of x or q before: `state.lead`."""
    state.out = state.out.reshape(*state.lead, state.out.shape[-1])


def back_to_batch_first(stage: Stage) -> Stage:
    """The other end of `across_the_batch`."""

    def wrong(state: State) -> None:
        stage(state)
        state.out = state.out.transpose(0, 1)
        empty = getattr(state, "empty", None)
        if empty is not None:  # (T, H, B, 1) or less: back in the order of the result
            state.empty = (empty.any(dim=1) if empty.dim() == 4 else empty).transpose(0, -2)

    return wrong


# ----------------------------------------------------------------------------------------------------------- heads


def split_heads(state: State) -> None:
    """(B, T, E) to (B, H, T, D) for q, k and v: head h owns columns h*D to (h+1)*D."""
    state.q, state.k, state.v = (split(part, state.H) for part in (state.q, state.k, state.v))


def split(part: Tensor, heads: int) -> Tensor:
    """(B, T, E) to (B, H, T, D)."""
    batch, length, width = part.shape
    return part.reshape(batch, length, heads, width // heads).transpose(1, 2)


def split_no_transpose(state: State) -> None:
    """(B, T, E) read as (B, H, T, D) as it lies in memory."""
    state.q, state.k, state.v = (
        part.reshape(part.shape[0], state.H, part.shape[1], -1) for part in (state.q, state.k, state.v)
    )


def split_interleaved(state: State) -> None:
    """Head h takes the columns h, h + H, h + 2H, …"""
    state.q, state.k, state.v = (
        part.unflatten(-1, (-1, state.H)).permute(0, 3, 1, 2) for part in (state.q, state.k, state.v)
    )


def split_context_by_query_length(state: State) -> None:
    """k and v read with the queries' length: an error where the lengths differ."""
    batch, length = state.q.shape[:2]
    state.q = split(state.q, state.H)
    state.k, state.v = (
        part.reshape(batch, length, state.H, part.shape[-1] // state.H).transpose(1, 2) for part in (state.k, state.v)
    )


def context_by_query_length(state: State) -> None:
    """k and v read with the queries' length: an error where the lengths differ."""
    lead = state.q.shape[:-1]
    state.k, state.v = state.k.reshape(*lead, state.k.shape[-1]), state.v.reshape(*lead, state.v.shape[-1])


def merge_heads(state: State) -> None:
    """(B, H, T, Dv) to (B, T, H * Dv), heads side by side."""
    state.out = state.out.transpose(1, 2).flatten(2)


def merge_no_transpose(state: State) -> None:
    """(B, H, T, Dv) read as (B, T, H * Dv) as it lies in memory."""
    batch, _, length, _ = state.out.shape
    state.out = state.out.contiguous().reshape(batch, length, -1)


def merge_interleaved(state: State) -> None:
    """Features of the heads in turn: column d * H + h holds feature d of head h."""
    state.out = state.out.permute(0, 2, 3, 1).flatten(2)


def project_out(state: State) -> None:
    """Through o_proj."""
    state.out = linear(state, "o_proj", state.out)


# ---------------------------------------------------------------------------------------------------------- scores


def score(state: State) -> None:
    """q kᵀ."""
    state.scores = state.q @ state.k.transpose(-2, -1)


def score_swapped(state: State) -> None:
    """k qᵀ: keys ask and queries answer; an error later where the lengths differ."""
    state.scores = state.k @ state.q.transpose(-2, -1)


def scale(by: Callable[[State], float]) -> Stage:
    """Divide the scores by `by(state)`."""

    def stage(state: State) -> None:
        state.scores = state.scores / by(state)

    return stage


def root_head_dim(state: State) -> float:
    """sqrt(D), D the last size of q."""
    return math.sqrt(state.q.shape[-1])


scale_by_head_dim = scale(root_head_dim)
scale_by_value_dim = scale(lambda state: math.sqrt(state.v.shape[-1]))
scale_by_embed_dim = scale(lambda state: math.sqrt(state.q.shape[-1] * state.H))
scale_by_key_length = scale(lambda state: math.sqrt(state.k.shape[-2]))
scale_by_query_length = scale(lambda state: math.sqrt(state.q.shape[-2]))
scale_by_heads = scale(lambda state: math.sqrt(state.H))
scale_no_sqrt = scale(lambda state: float(state.q.shape[-1]))
scale_inverted = scale(lambda state: 1 / root_head_dim(state))
scale_squared_inverted = scale(lambda state: 1 / float(state.q.shape[-1]))


def scale_floor_division(state: State) -> None:
    """scores // sqrt(D): integers."""
    state.scores = torch.floor(state.scores / root_head_dim(state))


def scale_weights(state: State) -> None:
    """The scale, applied after the softmax."""
    state.weights = state.weights / root_head_dim(state)


# ----------------------------------------------------------------------------------------------------------- masks


def mask(state: State) -> None:
    """Scores of masked keys become -inf; rows with nothing to attend to are noted."""
    fill(state, state.keep)


def fill(state: State, keep: Tensor | None, value: float = float("-inf")) -> None:
    """Fill the scores where `keep` is False; -inf in the way that `state.masking` says (`MASKING`), all of them right."""
    if keep is None:
        return
    way, finite = getattr(state, "masking", None) or ("fill", value)
    if value != float("-inf"):
        state.scores = state.scores.masked_fill(~keep, value)
    elif way == "fill":
        state.scores = state.scores.masked_fill(~keep, finite)
        if finite == value:
            note_empty(state, keep)
    elif way == "add":
        state.scores = state.scores + finite * (~keep).to(state.scores.dtype)
    else:
        later = getattr(state, "mask_later", None)
        state.mask_later = keep if later is None else keep & later


# The right ways to mask but -inf in the scores. They give the same result until another mistake is made: after a softmax along
# another axis, say, a column of -inf is NaN, a column of -1e9 is even, and with -1e9 added it is as if nothing were masked.
FINITE = -1e9
MASKING = ("fill", "add", "after")


def weigh_later(state: State) -> None:
    """Mask the weights and divide by what is left, where a stage before has put that off (`MASKING`: "after")."""
    keep = getattr(state, "mask_later", None)
    if keep is not None and hasattr(state, "weights"):
        kept = state.weights * keep
        state.weights = kept / kept.sum(dim=-1, keepdim=True)
        note_empty(state, keep.expand(state.weights.shape))
        state.mask_later = None


def note_empty(state: State, keep: Tensor) -> None:
    """Note the rows in which no key is kept: their result depends on the fill."""
    empty = ~keep.any(dim=-1, keepdim=True)  # (..., Tq, 1)
    state.empty = empty if getattr(state, "empty", None) is None else state.empty | empty


def mask_inverted(state: State) -> None:
    """True taken as "ignore"."""
    fill(state, None if state.keep is None else ~state.keep)


def mask_with_zero(state: State) -> None:
    """Masked scores become 0 before the softmax: they keep weight exp(0)."""
    fill(state, state.keep, 0.0)


def mask_transposed(state: State) -> None:
    """The mask's last two dimensions exchanged: what is meant for keys is laid on queries."""
    fill(state, None if state.keep is None else state.keep.transpose(-2, -1))


def mask_on_queries(state: State) -> None:
    """A key mask (..., 1, Tk) laid on the queries: (..., Tq, 1). An error where the lengths differ."""
    if state.keep is None:
        return
    keep = state.keep.transpose(-2, -1)
    if keep.shape[-2] not in (1, state.scores.shape[-2]):
        raise RuntimeError("the size of tensor a must match the size of tensor b")
    fill(state, keep)


def hide_later_keys(state: State) -> None:
    """A causal mask that nobody asked for; no row becomes empty."""
    later = torch.ones(state.scores.shape[-2:], dtype=torch.bool).triu(1)
    state.scores = state.scores.masked_fill(later, float("-inf"))


def mask_weights(state: State) -> None:
    """Weights multiplied by the mask and not renormalised."""
    if state.keep is not None:
        state.weights = state.weights * state.keep


def mask_weights_renormalised(state: State) -> None:
    """Weights multiplied by the mask and divided by what is left: as right as masking before the softmax."""
    if state.keep is not None:
        kept = state.weights * state.keep
        state.weights = kept / kept.sum(dim=-1, keepdim=True)
        note_empty(state, state.keep.expand(state.weights.shape))


# --------------------------------------------------------------------------------------------------------- weights


def softmax_over(dim: int | None) -> Stage:
    """Softmax of the scores along `dim`; None takes the dimension that torch guesses where none is given."""

    def stage(state: State) -> None:
        rank = state.scores.dim()
        guessed = 0 if rank in (0, 1, 3) else 1
        state.weights = state.scores.softmax(dim=guessed if dim is None else dim)

    return stage


softmax_over_keys = softmax_over(-1)
softmax_over_queries = softmax_over(-2)


def softmax_over_heads(state: State) -> None:
    """Softmax over the dimension before the queries, where there is one."""
    if state.scores.dim() < 3:
        raise IndexError("Dimension out of range")
    state.weights = state.scores.softmax(dim=-3)


def softmax_over_lead(state: State) -> None:
    """Softmax over every dimension before the queries together: batch and heads folded into one, and no `dim`, or 0."""
    state.weights = state.scores.reshape(-1, *state.scores.shape[-2:]).softmax(0).view_as(state.scores)


def softmax_over_everything(state: State) -> None:
    """One softmax over queries and keys together."""
    state.weights = state.scores.flatten(-2).softmax(-1).view_as(state.scores)


def softmax_missing(state: State) -> None:
    """Raw scores used as weights; a masked one, -inf, as 0."""
    state.weights = state.scores.masked_fill(state.scores == float("-inf"), 0.0)


def softmax_missing_unmasked(state: State) -> None:
    """Raw scores used as weights, -inf and all."""
    state.weights = state.scores


def softmax_sigmoid(state: State) -> None:
    """Sigmoid instead of softmax."""
    state.weights = state.scores.sigmoid()


def drop(state: State) -> None:
    """Dropout on the weights, in training only: `state.p`, `state.training`."""
    state.weights = torch.dropout(state.weights, state.p, _training(state))


def drop_always(state: State) -> None:
    """Dropout in eval too."""
    state.weights = torch.dropout(state.weights, state.p, True)


def drop_after(stage: Stage) -> Stage:
    """A stage that makes scores, then dropout on them: before the softmax."""

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


def mix(state: State) -> None:
    """weights v."""
    state.out = state.weights @ state.v


def values_are_keys(state: State) -> None:
    """The keys mixed instead of the values."""
    state.out = state.weights @ state.k
