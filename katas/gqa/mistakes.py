"""gqa as a pipeline, and the ways each stage goes wrong."""

import math

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import GIVEN_MASKS, MASKINGS, MERGES, SCALES, SCORES, SOFTMAXES
from attn_kata.diagnosis.pictures import of_heads
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn


def begin(parameters, build, x, mask=None):
    return State(parameters=parameters, x=x, context=x, H=build[1], G=build[2], n=build[1] // build[2], keep=mask)


def split_by(how):
    """q into H heads, k and v into G: (B, T, heads * D) -> (B, heads, T, D), by `how(tensor, heads)`."""

    def stage(state):
        state.q, state.k, state.v = how(state.q, state.H), how(state.k, state.G), how(state.v, state.G)

    return stage


def in_memory_order(part, heads):
    return part.reshape(part.shape[0], heads, part.shape[1], -1)


def interleaved(part, heads):
    return part.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)


def group_by(keys, values=None):
    """k and v (B, G, T, D) -> (B, H, T, D): one for each query head, by `keys(tensor, state)` and `values(tensor, state)`."""

    def stage(state):
        state.k, state.v = keys(state.k, state), (values or keys)(state.v, state)

    return stage


def neighbours_share(part, state):
    return part.repeat_interleave(state.n, dim=1)


def in_turn(part, state):
    return part.repeat(1, state.n, 1, 1)


def first_only(part, state):
    return part[:, :1].expand(-1, state.H, -1, -1)


def mean_of_all(part, state):
    return part.mean(1, keepdim=True).expand(-1, state.H, -1, -1)


def tokens_mixed(part, state):
    return part.repeat_interleave(state.n, dim=2).reshape(part.shape[0], state.H, *part.shape[2:])


def by_count(part, state):
    """Head h reads h // G: the number of groups taken for their size."""
    return torch.stack([part[:, h // state.G] for h in range(state.H)], dim=1)


def queries_averaged(state):
    group_by(neighbours_share)(state)
    state.q = state.q.unflatten(1, (state.G, state.n)).mean(2).repeat_interleave(state.n, dim=1)


def merge_groups_in_turn(state):
    """The heads (G, H / G) merged as (H / G, G)."""
    state.out = state.out.unflatten(1, (state.G, state.n)).transpose(1, 2).flatten(1, 2)
    s.merge_heads(state)


def put_groups_in_turn(state):
    """The heads (H / G, G) merged as (G, H / G)."""
    state.out = state.out.unflatten(1, (state.n, state.G)).transpose(1, 2).flatten(1, 2)
    s.merge_heads(state)


def in_the_einsum(dim):
    """The softmax over a dimension of the scores (B, G, H / G, T, T), as an einsum makes them."""

    def stage(state):
        state.weights = state.scores.unflatten(1, (state.G, state.n)).softmax(dim).flatten(1, 2)

    return stage


def softmax_over_folded_queries(state):
    """Over all queries of a group, which lie in one dimension: (B, G, H / G * T, T)."""
    folded = state.scores.unflatten(1, (state.G, state.n)).flatten(2, 3)
    state.weights = folded.softmax(2).view_as(state.scores)


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
            "group": group_by(neighbours_share),
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
            *variants("project.activation", {"project": s.project(by=s.linear_rectified)}),
            *variants("project.weight_transposed", {"output": s.project_out_transposed}),
            *variants("split.no_transpose", {"split": split_by(in_memory_order)}),
            *variants("split.interleaved", {"split": split_by(interleaved)}),
            *variants("group.repeated", {"group": group_by(in_turn)}),
            *variants(
                "group.mismatched",
                {"group": group_by(neighbours_share, in_turn)},
                {"group": group_by(in_turn, neighbours_share)},
            ),
            *variants("group.first_only", {"group": group_by(first_only)}),
            *variants("group.averaged", {"group": group_by(mean_of_all)}, {"group": queries_averaged}),
            *variants("group.tokens_mixed", {"group": group_by(tokens_mixed)}),
            *variants("group.count_for_size", {"group": group_by(by_count)}),
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
            *variants("merge.group_order", {"merge": merge_groups_in_turn}, {"merge": put_groups_in_turn}),
        ),
        probes=probes,
    ),
)

SYMPTOMS = (breaks("arguments.unchecked", "heads_must_divide"),)


def pictures():
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    return (of_heads("GroupedQueryAttention", (12, 2, 2), heads=2, head_dim=6, length=4, mask=causal),)
