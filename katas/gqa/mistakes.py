"""gqa as a pipeline, and the ways each stage goes wrong."""

import math

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import (
    GIVEN_MASKS,
    GROUPS,
    MASKINGS,
    MERGES,
    SCALES,
    SCORES,
    SOFTMAXES,
    SPLITS_OF_SOME,
)
from attn_kata.diagnosis.pictures import of_heads
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn


def begin(parameters, build, x, mask=None):
    return State(parameters=parameters, x=x, context=x, H=build[1], G=build[2], keep=mask)


def split_by(how, otherwise=None, names=""):
    """q into H heads, k and v into G, by `how(tensor, heads)`, or `otherwise` those in `names`.

    (B, T, heads * D) -> (B, heads, T, D).
    """

    def stage(state):
        for name, heads in (("q", state.H), ("k", state.G), ("v", state.G)):
            setattr(state, name, (otherwise if name in names else how)(getattr(state, name), heads))

    return stage


def in_memory_order(part, heads):
    return part.reshape(part.shape[0], heads, part.shape[1], -1)


def interleaved(part, heads):
    return part.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)


def behind_tokens(part, heads):
    """(B, T, heads * D) to (B, T, heads, D), without a transpose: the heads of one token attend to each other."""
    return part.unflatten(-1, (heads, -1))


def neighbours_behind_tokens(part, state):
    """(B, T, G, D) to (B, T, H, D): each key-value head for the query heads of its group."""
    return part.repeat_interleave(state.H // state.G, dim=2)


def merge_groups_in_turn(state):
    """The heads (G, H / G) merged as (H / G, G)."""
    s.groups_in_turn(state)
    s.merge_heads(state)


def merge_averaged_groups(state):
    """The results of the heads of a group replaced by their mean."""
    count = state.H // state.G
    state.out = state.out.unflatten(1, (state.G, count)).mean(2).repeat_interleave(count, dim=1)
    s.merge_heads(state)


def put_groups_in_turn(state):
    """The heads (H / G, G) merged as (G, H / G)."""
    state.out = state.out.unflatten(1, (state.H // state.G, state.G)).transpose(1, 2).flatten(1, 2)
    s.merge_heads(state)


def merge_of_five(*order):
    """The stage that puts the dimensions of (B, G, H / G, T, D) in this order and reads it as (B, T, H * D) as it lies."""

    def stage(state):
        batch, _, length, _ = state.out.shape
        state.out = state.out.unflatten(1, (state.G, -1)).permute(*order).reshape(batch, length, -1)

    return stage


def in_the_einsum(dim):
    """The softmax over a dimension of the scores (B, G, H / G, T, T), as an einsum makes them."""

    def stage(state):
        state.weights = state.scores.unflatten(1, (state.G, state.H // state.G)).softmax(dim).flatten(1, 2)

    return stage


def softmax_over_folded_queries(state):
    """Over all queries of a group, which lie in one dimension: (B, G, H / G * T, T)."""
    folded = state.scores.unflatten(1, (state.G, state.H // state.G)).flatten(2, 3)
    state.weights = folded.softmax(2).view_as(state.scores)


def mask_by_head(rule):
    """The stage that gives query head h the mask of head `rule(h, H, G)`."""

    def stage(state):
        if state.keep is not None and state.keep.dim() > 2 and state.keep.shape[-3] == state.H:
            heads = [rule(h, state.H, state.G) for h in range(state.H)]
            state.keep = state.keep[..., heads, :, :]

    return stage


def in_another_order(h, H, G):
    """The heads (G, H / G) read as (H / G, G)."""
    return h % G * (H // G) + h // G


def in_turn(h, H, G):
    """The heads (H / G, G) read as (G, H / G)."""
    return h % (H // G) * G + h // (H // G)


def of_the_group(h, H, G):
    """The number of the key-value head taken for that of the query head."""
    return h // (H // G)


def some(*shape):
    """Random booleans, the diagonal True where there is one: no row is empty, also transposed."""
    keep = torch.rand(*shape) > 0.35
    return keep | torch.eye(shape[-1], dtype=torch.bool) if shape[-2] == shape[-1] else keep


def probe(B, T, H, G, D, mask_shape=None):
    mask = None if mask_shape is None else some(*mask_shape)
    sizes = {"B": B, "T": T, "Tq": T, "Tk": T, "E": H * D, "H": H, "D": D}
    return Probe(args=(randn(B, T, H * D), mask), build=(H * D, H, G), sizes=sizes)


def probes():
    return [
        probe(2, 5, 6, 2, 4, (2, 1, 5, 5)),
        probe(2, 5, 6, 3, 4),
        probe(3, 4, 6, 3, 5, (3, 6, 4, 4)),
        probe(2, 7, 4, 2, 3, (7, 7)),
        probe(2, 4, 4, 2, 4, (4, 4, 4)),
        probe(
            4, 3, 4, 1, 5, (4, 1, 3, 3)
        ),  # as many samples as heads: a mask with a dimension of its own raises nowhere
    ]


PIPELINES = (
    Pipeline(
        entry="GroupedQueryAttention",
        module=True,
        begin=begin,
        stages={
            "project": s.project(),
            "split": split_by(s.split),
            "group": s.group_by(s.neighbours_share),
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": s.project_out,
        },
        variants=(
            *variants("project.key_for_value", {"project": s.project(v="k_proj")}),
            *variants("project.value_for_key", {"project": s.project(k="v_proj")}),
            *variants("project.exchanged", {"project": s.project(k="v_proj", v="k_proj")}),
            *variants("project.weight_transposed", {"output": s.project_out_transposed}),
            *variants(
                "layout.batch_as_time",
                {"project": s.across_the_batch(s.project()), "output": s.back_to_batch_first(s.project_out)},
            ),
            *variants("split.no_transpose", {"split": split_by(in_memory_order)}),
            *variants(
                "split.interleaved",
                {"split": split_by(interleaved)},
                *({"split": split_by(s.split, interleaved, names)} for names in ("q", "k", "v", "kv")),
            ),
            *SPLITS_OF_SOME,
            *variants(
                "split.order",
                *(
                    {"split": split_by(behind_tokens), "group": s.group_by(group), "merge": merge}
                    for group in (neighbours_behind_tokens, s.neighbours_share)  # of heads, and of tokens, which raises
                    for merge in (s.merge_behind_tokens, s.merge_behind_tokens_transposed)
                ),
            ),
            *GROUPS,
            *variants("group.averaged", {"merge": merge_averaged_groups}),
            *variants("group.repeated", {"group": s.group_by(s.in_turn), "shape": mask_by_head(in_another_order)}),
            *variants(
                "mask.group_order",
                *({"shape": mask_by_head(rule)} for rule in (in_turn, in_another_order, of_the_group)),
            ),
            *SCORES,
            *SCALES,
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *variants("scale.kv_width", {"scale": s.scale(lambda state: math.sqrt(state.q.shape[-1] * state.G))}),
            *GIVEN_MASKS,
            *MASKINGS,
            *SOFTMAXES,
            *variants("softmax.query_axis", {"normalise": softmax_over_folded_queries}),
            *variants("softmax.head_axis", {"normalise": in_the_einsum(1)}, {"normalise": in_the_einsum(2)}),
            *MERGES,
            *variants(
                "merge.wrong_transpose",
                *({"merge": merge_of_five(*order)} for order in ((0, 2, 1, 3, 4), (0, 1, 3, 2, 4), (0, 2, 3, 1, 4))),
            ),
            *variants("merge.group_order", {"merge": merge_groups_in_turn}, {"merge": put_groups_in_turn}),
        ),
        probes=probes,
    ),
)

SYMPTOMS = (breaks("arguments.unchecked", "heads_must_divide"),)


def pictures():
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    return (of_heads("GroupedQueryAttention", (12, 2, 2), heads=2, head_dim=6, length=4, mask=causal),)
