"""Projections: queries, keys and values out of the inputs, and stages that take the batch for time."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Stage, State


def linear(state: State, name: str, value: Tensor) -> Tensor:
    """`value` (..., in) through the layer `name`: (..., out). With the bias where the parameters have one."""
    out: Tensor = value @ state.parameters[f"{name}.weight"].T
    bias = state.parameters.get(f"{name}.bias")
    return out if bias is None else out + bias


def linear_transposed(state: State, name: str, value: Tensor) -> Tensor:
    """`value` times the layer's weight, and not its transpose. Raises RuntimeError where the sizes do not meet."""
    out: Tensor = value @ state.parameters[f"{name}.weight"]
    bias = state.parameters.get(f"{name}.bias")
    return out if bias is None else out + bias


def linear_without_bias(state: State, name: str, value: Tensor) -> Tensor:
    """`value` times the layer's weight, without its bias."""
    out: Tensor = value @ state.parameters[f"{name}.weight"].T
    return out


def only(names: Collection[str], by: Callable[[State, str, Tensor], Tensor]) -> Callable[[State, str, Tensor], Tensor]:
    """What applies the layers of these names by `by`, and every other one as it should be."""
    return lambda state, name, value: (by if name in names else linear)(state, name, value)


def project(
    q: str | None = "q_proj",
    k: str | None = "k_proj",
    v: str | None = "v_proj",
    *,
    by: Callable[[State, str, Tensor], Tensor] = linear,
) -> Stage:
    """The stage that makes q from `x`, and k and v from `context`, by the layers of these names. None is no layer."""

    def stage(state: State) -> None:
        state.q, state.k, state.v = (
            source if name is None else by(state, name, source)
            for name, source in ((q, state.x), (k, state.context), (v, state.context))
        )

    return stage


def project_in_a_chain(values_of: str) -> Stage:
    """k made of q, and v of `values_of`, q or k, in the place of `context`: the name of the input was written over."""

    def stage(state: State) -> None:
        state.q = linear(state, "q_proj", state.x)
        state.k = linear(state, "k_proj", state.q)
        state.v = linear(state, "v_proj", state.q if values_of == "q" else state.k)

    return stage


def across_the_batch(stage: Stage) -> Stage:
    """`stage`, which makes q, k and v (B, T, D), followed by an exchange of batch and time: attention runs over the samples."""

    def wrong(state: State) -> None:
        stage(state)
        state.q, state.k, state.v = (part.transpose(0, 1) for part in (state.q, state.k, state.v))

    return wrong


def samples_as_tokens(state: State) -> None:
    """Batch and time of `x` exchanged before anything else: attention runs over the samples."""
    state.x = state.context = state.x.transpose(0, 1)


def all_tokens_together(state: State) -> None:
    """All leading dimensions folded into time, (B * T, D): tokens attend to those of other samples and heads."""
    state.q, state.k, state.v = (part.reshape(-1, part.shape[-1]) for part in (state.q, state.k, state.v))


def samples_side_by_side(state: State) -> None:
    """All tokens of `x` (B, T, E) as those of one sample, (1, B * T, E). No mask fits them, so all keys are kept."""
    state.samples = state.x.shape[0]
    state.x = state.context = state.x.reshape(1, -1, state.x.shape[-1])
    tokens = state.x.shape[1]
    if getattr(state, "keep", None) is not None:
        state.keep = torch.ones(1, 1, tokens, tokens, dtype=torch.bool)


def samples_apart(state: State) -> None:
    """Undo `samples_side_by_side` at the output."""
    state.out = state.out.reshape(state.samples, -1, state.out.shape[-1])


def context_across_the_batch(stage: Stage) -> Stage:
    """`stage`, which leaves k and v (B, H, Tk, D), after which all samples share one context (1, H, B * Tk, D) and mask."""

    def wrong(state: State) -> None:
        stage(state)
        state.k, state.v = (part.transpose(0, 1).flatten(1, 2)[None] for part in (state.k, state.v))
        state.keep = None if state.keep is None else state.keep.reshape(1, 1, 1, -1)

    return wrong


def apart_again(state: State) -> None:
    """Undo `all_tokens_together` at the output; `state.lead` has the leading sizes from before."""
    state.out = state.out.reshape(*state.lead, state.out.shape[-1])


def back_to_batch_first(stage: Stage) -> Stage:
    """`stage`, followed by the exchange of batch and time that undoes `across_the_batch` at the output."""

    def wrong(state: State) -> None:
        stage(state)
        state.out = state.out.transpose(0, 1)
        empty = getattr(state, "empty", None)
        if empty is not None:  # (T, H, B, 1) or less: back in the order of the result
            state.empty = (empty.any(dim=1) if empty.dim() == 4 else empty).transpose(0, -2)

    return wrong
