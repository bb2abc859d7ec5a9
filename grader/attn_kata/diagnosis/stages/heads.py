"""Heads: the split, the merge, keys and values read with a wrong length, and o_proj (Vaswani et al., 2017, section 3.2.2)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from attn_kata.diagnosis.pipeline import Stage, State
from attn_kata.diagnosis.stages.projections import linear, linear_transposed, linear_without_bias

Split = Callable[[Tensor, int], Tensor]  # one tensor (B, T, E) and the number of heads, to (B, H, T, D)


def split_heads(state: State) -> None:
    """(B, T, E) to (B, H, T, D) for q, k and v: head h owns columns h*D to (h+1)*D."""
    state.q, state.k, state.v = (split(part, state.H) for part in (state.q, state.k, state.v))


def split(part: Tensor, heads: int) -> Tensor:
    """One tensor (B, T, E) split into heads: (B, H, T, E / H)."""
    batch, length, width = part.shape
    return part.reshape(batch, length, heads, width // heads).transpose(1, 2)


def as_it_lies(part: Tensor, heads: int) -> Tensor:
    """(B, T, E) read as (B, H, T, D) as it lies in memory."""
    return part.reshape(part.shape[0], heads, part.shape[1], -1)


def split_some_no_transpose(*names: str) -> Stage:
    """The stage that splits these of q, k and v without a transpose, and the others right."""
    return split_by(**dict.fromkeys(names, as_it_lies))


def in_turn_columns(part: Tensor, heads: int) -> Tensor:
    """Head h takes the columns h, h + H, h + 2H, …"""
    parts: Tensor = part.unflatten(-1, (-1, heads))
    return parts.permute(0, 3, 1, 2)


def last_head_first(part: Tensor, heads: int) -> Tensor:
    """Split right, with the heads in the opposite order."""
    return split(part, heads).flip(1)


def split_by(*, q: Split = split, k: Split = split, v: Split = split) -> Stage:
    """The stage that splits each of q, k and v in a way of its own. k and v may have G heads."""

    def stage(state: State) -> None:
        groups = getattr(state, "G", state.H)
        state.q, state.k, state.v = q(state.q, state.H), k(state.k, groups), v(state.v, groups)

    return stage


def split_one_by(wrong: Split) -> tuple[Stage, ...]:
    """The stages that split one of q, k and v so, and the other two right."""
    return split_by(q=wrong), split_by(k=wrong), split_by(v=wrong)


def split_no_transpose(state: State) -> None:
    """(B, T, E) read as (B, H, T, D) as it lies in memory, for q, k and v."""
    split_by(q=as_it_lies, k=as_it_lies, v=as_it_lies)(state)


def split_interleaved(state: State) -> None:
    """(B, T, E) to (B, H, T, D), head h taking the columns h, h + H, h + 2H, … of q, k and v."""
    split_by(q=in_turn_columns, k=in_turn_columns, v=in_turn_columns)(state)


def split_behind_tokens(state: State) -> None:
    """(B, T, E) to (B, T, H, D) for q, k and v, and no transpose: the heads of one token attend to each other."""
    state.q, state.k, state.v = (split(part, state.H).transpose(1, 2) for part in (state.q, state.k, state.v))


def split_by_size(state: State) -> None:
    """(B, T, E) to (B, D, T, H): as many heads as a head has features, each of the size H."""
    state.q, state.k, state.v = (split(part, part.shape[-1] // state.H) for part in (state.q, state.k, state.v))


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


def merge_heads_first_no_transpose(state: State) -> None:
    """(H, B, T, Dv), as heads in a list are stacked, read as (B, T, H * Dv) as it lies in memory."""
    batch, _, length, _ = state.out.shape
    state.out = state.out.transpose(0, 1).reshape(batch, length, -1)


def merge_behind_tokens(state: State) -> None:
    """(B, T, H, Dv), heads behind tokens, to (B, T, H * Dv)."""
    state.out = state.out.flatten(2)


def merge_behind_tokens_transposed(state: State) -> None:
    """(B, T, H, Dv), transposed as if heads came before tokens, read as (B, T, H * Dv) as it lies in memory."""
    batch, length = state.out.shape[:2]
    state.out = state.out.transpose(1, 2).reshape(batch, length, -1)


def merge_to_any_length(state: State) -> None:
    """Heads side by side, read as (B, -1, H * Dv): samples that a mask has multiplied become more tokens."""
    batch, width = state.x.shape[0], state.H * state.out.shape[-1]
    state.out = state.out.transpose(1, 2).reshape(batch, -1, width)


def merge_transposed_last(state: State) -> None:
    """(B, H, T, Dv) with T and Dv exchanged, read as (B, T, H * Dv) as it lies in memory."""
    batch, _, length, _ = state.out.shape
    state.out = state.out.transpose(-1, -2).reshape(batch, length, -1)


def merge_in_order(*order: int) -> Stage:
    """The stage that puts the dimensions of (B, H, T, Dv) in this order, and reads it as (B, T, H * Dv) as it lies then."""

    def stage(state: State) -> None:
        batch, _, length, _ = state.out.shape
        state.out = state.out.permute(*order).reshape(batch, length, -1)

    return stage


# Orders of (B, H, T, Dv) that mix features of several tokens, and then of several samples, into the rows.
WRONG_MERGES = ((0, 3, 2, 1), (0, 3, 1, 2), (1, 2, 0, 3), (2, 0, 1, 3), (2, 1, 0, 3))


def merge_interleaved(state: State) -> None:
    """(B, H, T, Dv) to (B, T, Dv * H): column d * H + h holds feature d of head h."""
    state.out = state.out.permute(0, 2, 3, 1).flatten(2)


def merge_head_order(order: Callable[[int], list[int]]) -> Stage:
    """The stage that joins the heads as `order` lists them."""

    def stage(state: State) -> None:
        heads = order(state.out.shape[1])
        state.out = state.out[:, heads].transpose(1, 2).flatten(2)

    return stage


HEAD_ORDERS: tuple[Callable[[int], list[int]], ...] = (
    lambda heads: list(range(heads))[::-1],
    lambda heads: [*range(1, heads), 0],
    lambda heads: [heads - 1, *range(heads - 1)],
)


def merge_samples_as_heads(state: State) -> None:
    """(B, H, T, Dv), folded to (B * H, T, Dv), read as (H, B, T, Dv): samples and heads mixed."""
    batch, heads, length, width = state.out.shape
    state.out = state.out.reshape(heads, batch, length, width).permute(1, 2, 0, 3).flatten(2)


def merge_heads_as_samples(state: State) -> None:
    """(H, B, T, Dv), folded to (H * B, T, Dv), read as (B, H, T, Dv): samples and heads mixed."""
    batch, heads, length, width = state.out.shape
    state.out = state.out.transpose(0, 1).reshape(batch, heads, length, width).transpose(1, 2).flatten(2)


def project_out(state: State) -> None:
    """`out` (B, Tq, E) through the layer o_proj."""
    state.out = linear(state, "o_proj", state.out)


def project_out_transposed(state: State) -> None:
    """`out` (B, Tq, E) times the weight of o_proj, and not its transpose."""
    state.out = linear_transposed(state, "o_proj", state.out)


def with_residual(stage: Stage) -> Stage:
    """`stage`, which makes the result (B, T, E), with the input `x` added to it."""

    def wrong(state: State) -> None:
        stage(state)
        state.out = state.out + state.x

    return wrong


def project_out_without_bias(state: State) -> None:
    """`out` (B, Tq, E) times the transposed weight of o_proj, without the bias."""
    state.out = linear_without_bias(state, "o_proj", state.out)
