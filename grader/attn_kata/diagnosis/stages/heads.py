"""Heads: the split, the merge, keys and values read with a wrong length, and o_proj (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from torch import Tensor

from attn_kata.diagnosis.pipeline import Stage, State
from attn_kata.diagnosis.stages.projections import linear, linear_transposed


def split_heads(state: State) -> None:
    """(B, T, E) to (B, H, T, D) for q, k and v: head h owns columns h*D to (h+1)*D."""
    state.q, state.k, state.v = (split(part, state.H) for part in (state.q, state.k, state.v))


def split(part: Tensor, heads: int) -> Tensor:
    """One tensor (B, T, E) split into heads: (B, H, T, E / H)."""
    batch, length, width = part.shape
    return part.reshape(batch, length, heads, width // heads).transpose(1, 2)


def split_no_transpose(state: State) -> None:
    """(B, T, E) read as (B, H, T, D) as it lies in memory."""
    state.q, state.k, state.v = (
        part.reshape(part.shape[0], state.H, part.shape[1], -1) for part in (state.q, state.k, state.v)
    )


def split_some_no_transpose(*names: str) -> Stage:
    """The stage that splits these of q, k and v without a transpose, and the others right. k and v may have G heads."""

    def stage(state: State) -> None:
        for name in ("q", "k", "v"):
            part, heads = getattr(state, name), state.H if name == "q" else getattr(state, "G", state.H)
            wrong = part.reshape(part.shape[0], heads, part.shape[1], -1)
            setattr(state, name, wrong if name in names else split(part, heads))

    return stage


def split_interleaved(state: State) -> None:
    """Head h takes the columns h, h + H, h + 2H, …"""
    state.q, state.k, state.v = (
        part.unflatten(-1, (-1, state.H)).permute(0, 3, 1, 2) for part in (state.q, state.k, state.v)
    )


def split_context_by_query_length(state: State) -> None:
    """As `split_heads`, but k and v are read with the queries' length. Raises RuntimeError where the lengths differ."""
    batch, length = state.q.shape[:2]
    state.q = split(state.q, state.H)
    state.k, state.v = (
        part.reshape(batch, length, state.H, part.shape[-1] // state.H).transpose(1, 2) for part in (state.k, state.v)
    )


def context_by_query_length(state: State) -> None:
    """k and v (..., Tk, D) read with the queries' length, without heads. Raises RuntimeError where the lengths differ."""
    lead = state.q.shape[:-1]
    state.k, state.v = state.k.reshape(*lead, state.k.shape[-1]), state.v.reshape(*lead, state.v.shape[-1])


def merge_heads(state: State) -> None:
    """(B, H, T, Dv) to (B, T, H * Dv), heads side by side.

    A mask with dimensions of its own gives the heads more of them: read as (B, T, H * Dv) where that has as many numbers.
    """
    merged = state.out.transpose(1, 2)
    if merged.dim() == 4:
        state.out = merged.flatten(2)
    else:
        batch, length = state.x.shape[:2]
        state.out = merged.reshape(batch, length, state.H * merged.shape[-1])


def merge_no_transpose(state: State) -> None:
    """(B, H, T, Dv) read as (B, T, H * Dv) as it lies in memory."""
    batch, _, length, _ = state.out.shape
    state.out = state.out.contiguous().reshape(batch, length, -1)


def merge_transposed_last(state: State) -> None:
    """(B, H, T, Dv) with T and Dv exchanged, read as (B, T, H * Dv) as it lies in memory."""
    batch, _, length, _ = state.out.shape
    state.out = state.out.transpose(-1, -2).reshape(batch, length, -1)


def merge_interleaved(state: State) -> None:
    """(B, H, T, Dv) to (B, T, Dv * H): column d * H + h holds feature d of head h."""
    state.out = state.out.permute(0, 2, 3, 1).flatten(2)


def project_out(state: State) -> None:
    """`out` (B, Tq, E) through the layer o_proj."""
    state.out = linear(state, "o_proj", state.out)


def project_out_transposed(state: State) -> None:
    """`out` (B, Tq, E) times the weight of o_proj, and not its transpose."""
    state.out = linear_transposed(state, "o_proj", state.out)
