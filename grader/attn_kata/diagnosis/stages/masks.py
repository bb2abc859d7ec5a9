"""Masks: the right ways to hide a key, and the wrong ones. `keep` is True where a query may attend, and None without a mask."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Stage, State


def mask(state: State) -> None:
    """Scores of masked keys become -inf."""
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
    elif way == "guard":
        state.scores = state.scores.masked_fill(~keep, value)
    elif way == "add":
        state.scores = state.scores + finite * (~keep).to(state.scores.dtype)
    else:
        later = getattr(state, "mask_later", None)
        state.mask_later = keep if later is None else keep & later


# The right ways to mask but -inf in the scores. They give the same result until another mistake is made: after a softmax along
# another axis, say, a column of -inf is NaN, a column of -1e9 is even, and with -1e9 added it is as if nothing were masked.
# So it is with a row that a wrong mask empties: NaN, even, as if nothing were masked, or 0 where NaN is guarded against.
FINITE = -1e9
MASKING = ("fill", "guard", "add", "after")


def weigh_later(state: State) -> None:
    """What a right way of masking does with the weights: a guard against NaN, or all of the masking (`MASKING`: "after")."""
    way, _ = getattr(state, "masking", None) or ("", 0.0)
    weights = getattr(state, "weights", None)
    if way == "guard" and weights is not None and weights is not getattr(state, "guarded", None):
        state.weights = state.guarded = weights.masked_fill(weights.isnan(), 0.0)
    keep = getattr(state, "mask_later", None)
    if keep is not None and hasattr(state, "weights"):
        kept = state.weights * keep
        state.weights = kept / kept.sum(dim=-1, keepdim=True)
        state.mask_later = None


def note_empty(state: State, keep: Tensor) -> None:
    """Set `empty` True for the rows in which no key is kept: their output depends on the fill."""
    empty = ~keep.any(dim=-1, keepdim=True)  # (..., Tq, 1)
    if not bool(empty.any()):
        return
    state.empty = empty if getattr(state, "empty", None) is None else state.empty | empty


def mask_inverted(state: State) -> None:
    """True read as "ignore" by the stages that follow: the kept keys are hidden."""
    state.keep = None if state.keep is None else ~state.keep


def mask_with_zero(state: State) -> None:
    """Masked scores become 0 before the softmax: masked keys keep the weight exp(0) / sum."""
    fill(state, state.keep, 0.0)


def mask_made_and_lost(state: State) -> None:
    """Scores filled and the result thrown away. Raises RuntimeError where the mask does not fit them."""
    if state.keep is not None:
        state.scores.masked_fill(~state.keep, float("-inf"))


def mask_filled_with(value: float) -> Stage:
    """The stage that fills the scores of masked keys with `value`, which is too near other scores."""
    return lambda state: fill(state, state.keep, value)


def mask_lowered_by(value: float) -> Stage:
    """The stage that adds `value` to the scores of masked keys, which is too little to hide them."""

    def stage(state: State) -> None:
        if state.keep is not None:
            state.scores = state.scores + value * (~state.keep).to(state.scores.dtype)

    return stage


def mask_zero_times_inf(state: State) -> None:
    """(1 - keep) * -inf added to the scores: 0 * -inf is NaN where a key is kept."""
    if state.keep is not None:
        state.scores = state.scores + (~state.keep).to(state.scores.dtype) * float("-inf")


def mask_transposed(state: State) -> None:
    """The mask's last two dimensions exchanged: flags of keys are used for queries. Later stages read it so.

    A key mask (..., 1, Tk) becomes (..., Tk, 1); a later stage raises where the lengths differ.
    """
    state.keep = None if state.keep is None else state.keep.transpose(-2, -1)


def mask_reshaped(by: Callable[[Tensor], Tensor]) -> Stage:
    """The stage that gives the mask dimensions as `by` says. Where it then does not fit the scores, a later stage raises."""

    def stage(state: State) -> None:
        state.keep = None if state.keep is None else by(state.keep)

    return stage


def mask_folded_in_turn(state: State) -> None:
    """Masks (B, H, …) folded with the samples in turn, (H, B, …), and read as if each sample's heads stood together."""
    if state.keep is None:
        return
    batch, heads = state.scores.shape[:2]
    keep = state.keep.expand(batch, heads, *state.keep.shape[-2:])
    state.keep = keep.transpose(0, 1).reshape(keep.shape)


def mask_folded_by_sample(state: State) -> None:
    """Masks (B, H, …) folded with each sample's heads together, and read as if the samples were in turn, (H, B, …)."""
    if state.keep is None:
        return
    batch, heads = state.scores.shape[:2]
    keep = state.keep.expand(batch, heads, *state.keep.shape[-2:])
    state.keep = keep.reshape(heads, batch, *keep.shape[-2:]).transpose(0, 1)


MASKS_FOLDED = (mask_folded_in_turn, mask_folded_by_sample)


def mask_added(state: State) -> None:
    """The mask added to the scores: True adds 1, False adds 0."""
    if state.keep is not None:
        state.scores = state.scores + state.keep.to(state.scores.dtype)


def mask_right_padding_only(state: State) -> None:
    """As many keys kept as a key mask (..., 1, Tk) says, but always the first ones."""
    if state.keep is not None:
        kept = state.keep.sum(dim=-1, keepdim=True)
        fill(state, torch.arange(state.keep.shape[-1]) < kept)


def mask_and_causal(state: State) -> None:
    """A causal mask that the contract does not ask for, beside the one that it does."""
    mask(state)
    fill(state, torch.ones(state.scores.shape[-2:], dtype=torch.bool).tril())


def mask_and_causal_with(value: float) -> Stage:
    """As `mask_and_causal`; the causal mask fills with `value`, however the other one is applied."""

    def stage(state: State) -> None:
        mask(state)
        later = torch.ones(state.scores.shape[-2:], dtype=torch.bool).triu(1)
        state.scores = state.scores.masked_fill(later, value)

    return stage


# Either mask may fill with the other's number or with its own: that tells in the rows that both together empty.
MASKS_AND_CAUSAL = (mask_and_causal, mask_and_causal_with(FINITE), mask_and_causal_with(float("-inf")))


def hide_later_keys(state: State) -> None:
    """A causal mask that the contract does not ask for; no row becomes empty."""
    later = torch.ones(state.scores.shape[-2:], dtype=torch.bool).triu(1)
    state.scores = state.scores.masked_fill(later, float("-inf"))


def mask_weights(state: State) -> None:
    """Weights multiplied by the mask and not normalised again."""
    if state.keep is not None:
        state.weights = state.weights * state.keep


def fill_weights(state: State) -> None:
    """The weights of masked keys become -inf, or the large number of `state.masking`, after the softmax."""
    if state.keep is not None:
        _, value = getattr(state, "masking", None) or ("fill", float("-inf"))
        state.weights = state.weights.masked_fill(~state.keep, value)
