"""split_heads as two pipelines of one stage, and the ways each goes wrong."""

import itertools

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn


def begin_split(x, heads):
    return State(x=x, H=heads)


def begin_merge(x):
    return State(out=x)


def split_probe(B, T, H, D):
    sizes = {"B": B, "T": T, "H": H, "D": D, "E": H * D}
    return Probe(args=(randn(B, T, H * D), H), sizes=sizes)


def merge_probe(B, T, H, D):
    sizes = {"B": B, "T": T, "H": H, "D": D, "E": H * D}
    return Probe(args=(randn(B, H, T, D),), sizes=sizes)


# Heads and time exchanged, and nothing else, is right both ways.
WRONG_ORDERS = [order for order in itertools.permutations(range(4)) if order != (0, 2, 1, 3)]


def probes_of(make):
    # All sizes different; then T = H, so that no shape tells what was exchanged; then all alike.
    return lambda: [make(2, 5, 3, 7), make(2, 3, 3, 5), make(3, 3, 3, 3), make(2, 7, 5, 2)]


# ------------------------------------------------------------------------------------------------------------ split


def split(state: State) -> None:
    """Head h owns columns h*D to (h+1)*D."""
    state.out = s.split(state.x, state.H)


def split_no_transpose(state: State) -> None:
    """(B, T, E) read as (B, H, T, D) as it lies in memory."""
    batch, length, _ = state.x.shape
    state.out = state.x.reshape(batch, state.H, length, -1)


def split_folded_no_transpose(state: State) -> None:
    """(B, T, E) read as (B * H, T, D) as it lies in memory."""
    batch, length, _ = state.x.shape
    state.out = state.x.reshape(batch * state.H, length, -1)


def split_in_head_order(order):
    """Split right, then the heads as `order` lists them."""

    def stage(state: State) -> None:
        state.out = s.split(state.x, state.H)[:, order(state.H)]

    return stage


def split_interleaved(state: State) -> None:
    """Head h takes the columns h, h + H, h + 2H, ..."""
    state.out = state.x.unflatten(-1, (-1, state.H)).permute(0, 3, 1, 2)


def split_interleaved_no_transpose(state: State) -> None:
    """(B, T, E) read as (B, T, D, H), and the last two exchanged with time as they stand: (B, H, D, T)."""
    state.out = state.x.unflatten(-1, (-1, state.H)).transpose(1, 3)


def split_in_order(*order):
    """The dimensions of (B, T, H, D) put in this order."""

    def wrong(state: State) -> None:
        state.out = state.x.unflatten(-1, (state.H, -1)).permute(*order)

    return wrong


def split_folded(state: State) -> None:
    """(B * H, T, D)."""
    state.out = s.split(state.x, state.H).flatten(0, 1)


# ------------------------------------------------------------------------------------------------------------ merge


def merge_in_order(*order):
    """The dimensions of (B, H, T, D) put in this order, the last two then made one."""

    def wrong(state: State) -> None:
        state.out = state.out.permute(*order).flatten(2)

    return wrong


def merge_other_dimensions(first):
    """(B, T, H, D) with two other dimensions made one than heads and features."""

    def wrong(state: State) -> None:
        state.out = state.out.transpose(1, 2).flatten(first, first + 1)

    return wrong


def merge_not_flattened(state: State) -> None:
    """(B, T, H, D)."""
    state.out = state.out.transpose(1, 2)


PIPELINES = (
    Pipeline(
        entry="split_heads",
        begin=begin_split,
        stages={"split": split},
        variants=(
            *variants("split.no_transpose", {"split": split_no_transpose}, {"split": split_folded_no_transpose}),
            *variants("split.interleaved", {"split": split_interleaved}, {"split": split_interleaved_no_transpose}),
            *variants("split.head_order", *({"split": split_in_head_order(order)} for order in s.HEAD_ORDERS)),
            *variants(
                "split.order",
                {"split": split_folded},
                *({"split": split_in_order(*order)} for order in WRONG_ORDERS),
            ),
        ),
        probes=probes_of(split_probe),
    ),
    Pipeline(
        entry="merge_heads",
        begin=begin_merge,
        stages={"merge": s.merge_heads},
        variants=(
            *variants("merge.no_transpose", {"merge": s.merge_no_transpose}),
            *variants("merge.interleaved", {"merge": s.merge_interleaved}),
            *variants("merge.head_order", *({"merge": s.merge_head_order(order)} for order in s.HEAD_ORDERS)),
            *variants("merge.folded_order", {"merge": s.merge_samples_as_heads}, {"merge": s.merge_heads_as_samples}),
            *variants(
                "merge.order",
                {"merge": merge_not_flattened},
                # (0, 2, 3, 1), feature by feature, is merge.interleaved
                *({"merge": merge_in_order(*order)} for order in WRONG_ORDERS if order != (0, 2, 3, 1)),
                *({"merge": merge_other_dimensions(first)} for first in (0, 1)),
            ),
        ),
        probes=probes_of(merge_probe),
    ),
)

SYMPTOMS = (breaks("arguments.unchecked", "indivisible_heads"),)
