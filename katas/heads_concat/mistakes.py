"""heads_concat as a pipeline over all heads at once, and the ways each stage goes wrong."""

import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import Picture
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom
from attn_kata.properties import randn


def begin(parameters, build, x):
    return State(parameters=parameters, x=x, input_dim=build[0], H=build[3])


def probe(B, T, input_dim, key_dim, value_dim, H):
    sizes = {
        "B": B,
        "T": T,
        "Tq": T,
        "Tk": T,
        "Din": input_dim,
        "E": H * key_dim,
        "D": key_dim,
        "Dv": value_dim,
        "H": H,
    }
    return Probe(args=(randn(B, T, input_dim),), build=(input_dim, key_dim, value_dim, H), sizes=sizes)


def probes():
    return [
        probe(2, 5, 7, 6, 4, 3),
        probe(3, 4, 8, 5, 9, 2),
        probe(3, 3, 10, 2, 6, 3),  # what is laid along another dimension raises nowhere
        probe(2, 5, 7, 4, 4, 3),  # nor does what takes keys for values
    ]


def project(q="q_proj", k="k_proj", v="v_proj", *, head=lambda i, heads: i):
    """q, k and v of every head, (B, H, T, size), by the layers of these names; `head` says whose weights head i has."""

    def stage(state):
        def of_all(name):
            layers = [f"heads.{head(i, state.H)}.{name}" for i in range(state.H)]
            return torch.stack([s.linear(state, layer, state.x) for layer in layers], dim=1)

        state.q, state.k, state.v = of_all(q), of_all(k), of_all(v)

    return stage


def side_by_side(state):
    """q, k and v with the heads side by side, (B, T, H * size), as one stacked projection gives them."""
    project()(state)
    return (part.transpose(1, 2).flatten(2) for part in (state.q, state.k, state.v))


def fused_no_transpose(state):
    """The fused form, its columns read as (B, H, T, size) as they lie in memory."""
    batch, length, _ = state.x.shape
    state.q, state.k, state.v = (part.reshape(batch, state.H, length, -1) for part in side_by_side(state))


def fused_interleaved(state):
    """The fused form, head h with every H-th column."""
    state.q, state.k, state.v = (part.unflatten(-1, (-1, state.H)).permute(0, 3, 1, 2) for part in side_by_side(state))


def fused_not_split(state):
    """The fused form, all columns as one wide head."""
    state.q, state.k, state.v = (part.unsqueeze(1) for part in side_by_side(state))


def scale_by_one_head(state):
    """sqrt(key_dim), though q is as wide as all heads."""
    state.scores = state.scores / (state.q.shape[-1] / state.H) ** 0.5


def across_the_samples(state):
    """Projected, then batch and time exchanged."""
    project()(state)
    state.q, state.k, state.v = (part.transpose(0, 2) for part in (state.q, state.k, state.v))


def back_then_merge(state):
    """The other end of `across_the_samples`."""
    state.out = state.out.transpose(0, 2)
    s.merge_heads(state)


def scale_by(width):
    return s.scale(lambda state: float(width(state)) ** 0.5)


def merge_along_time(state):
    """(B, H * T, value_dim): one head's tokens after the other's."""
    state.out = state.out.flatten(1, 2)


def merge_along_batch(state):
    """(H * B, T, value_dim)."""
    state.out = state.out.transpose(0, 1).flatten(0, 1)


def merge_stacked(dim):
    """The heads in a dimension of their own."""

    def wrong(state):
        state.out = torch.stack(state.out.unbind(1), dim=dim)

    return wrong


def merge_by_sum(state):
    """(B, T, value_dim): the heads added."""
    state.out = state.out.sum(1)


def merge_by_mean(state):
    """(B, T, value_dim): the heads averaged."""
    state.out = state.out.mean(1)


PIPELINES = (
    Pipeline(
        entry="MultiHeadAttentionWrapper",
        module=True,
        begin=begin,
        stages={
            "project": project(),
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "mask": s.nothing,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "mix": s.mix,
            "merge": s.merge_heads,
        },
        variants=(
            *variants(
                "module.repeated",
                {"project": project(head=lambda i, heads: heads - 1)},
                {"project": project(head=lambda i, heads: 0)},
            ),
            *variants("split.no_transpose", {"project": fused_no_transpose}),
            *variants("split.interleaved", {"project": fused_interleaved}),
            *variants(
                "split.missing", {"project": fused_not_split}, {"project": fused_not_split, "scale": scale_by_one_head}
            ),
            *variants("project.key_for_value", {"project": project(v="k_proj")}),
            *variants("project.query_for_key", {"project": project(k="q_proj")}, {"project": project(q="k_proj")}),
            *variants("project.query_for_value", {"project": project(v="q_proj")}),
            *variants("project.value_for_query", {"project": project(q="v_proj")}),
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants("layout.batch_as_time", {"project": across_the_samples, "merge": back_then_merge}),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants(
                "scale.embed_dim",
                {"scale": s.scale_by_embed_dim},
                {"scale": scale_by(lambda state: state.input_dim)},
                {"scale": scale_by(lambda state: state.H * state.v.shape[-1])},
            ),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *variants(
                "scale.head_share",
                {"scale": scale_by(lambda state: state.q.shape[-1] // state.H or 1)},
                {"scale": scale_by(lambda state: state.q.shape[-1] / state.H)},
            ),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants(
                "scale.inverted",
                {"scale": s.scale_inverted},
                {"scale": s.scale_squared_inverted},
                {"scale": s.scale(lambda state: float(state.input_dim) ** -0.5)},
            ),
            *variants("scale.floor_division", {"scale": s.scale_floor_division}),
            *variants(
                "scale.after_softmax",
                {"scale": s.nothing, "rescale": s.scale_weights},
                {"scale": s.nothing, "rescale": s.scale_weights_by_embed_dim},
            ),
            *variants("mask.causal", {"mask": s.hide_later_keys}),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over(0)}, {"normalise": s.softmax_over_heads}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *variants(
                "merge.no_transpose", {"merge": s.merge_no_transpose}, {"merge": s.merge_heads_first_no_transpose}
            ),
            *variants("merge.interleaved", {"merge": s.merge_interleaved}),
            *variants("merge.head_order", *({"merge": s.merge_head_order(order)} for order in s.HEAD_ORDERS)),
            *variants(
                "merge.order",
                {"merge": merge_along_time},
                {"merge": merge_along_batch},
                *({"merge": merge_stacked(dim)} for dim in (0, 1, 2, 3)),
            ),
            *variants("merge.averaged", {"merge": merge_by_sum}, {"merge": merge_by_mean}),
        ),
        probes=probes,
    ),
)


def _heads_in_a_list(evidence):
    told = any("its parameters are none" in failure.message for failure in evidence.failures.values())
    return 0 if told and re.search(r"self\.heads\s*=\s*[\[({]|self\.heads\.append", evidence.code) else None


def _one_head_several_times(evidence):
    failure = evidence.failures.get("parameters")
    only_one = failure and re.search(r"parameters are (heads\.\d+\.)\w+\.weight(, \1\w+\.weight)*;", failure.message)
    return 0 if only_one and re.search(r"\]\s*\*\s*\w|\w\s*\*\s*\[", evidence.code) else None


SYMPTOMS = (
    Symptom(id="module.unregistered", shows=_heads_in_a_list),
    Symptom(id="module.repeated", shows=_one_head_several_times),
)


def pictures():
    """x holds three random numbers and a one-hot code of the token; the values of both heads are the code."""
    x = torch.cat([randn(1, 4, 3), torch.eye(4, dtype=torch.float64)[None]], dim=-1)  # (1, 4, 7)
    parameters = {}
    for head in (0, 1):
        look = torch.zeros(2, 5, 7, dtype=torch.float64)
        look[:, :, :3] = randn(2, 5, 3)
        parameters[f"heads.{head}.q_proj.weight"], parameters[f"heads.{head}.k_proj.weight"] = look
        parameters[f"heads.{head}.v_proj.weight"] = torch.eye(7, dtype=torch.float64)[3:]  # (4, 7)
    return tuple(
        Picture(
            entry="MultiHeadAttentionWrapper",
            what=f"the weights of head {head}",
            read=lambda out, head=head: out[0, :, 4 * head : 4 * head + 4],
            args=(x,),
            build=(7, 5, 4, 2),
            parameters=parameters,
        )
        for head in (0, 1)
    )
