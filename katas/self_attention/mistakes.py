"""self_attention as a pipeline, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import ONE_LAYER, WEIGHTS
from attn_kata.diagnosis.pictures import Picture
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn


def begin(parameters, build, x):
    return State(parameters=parameters, x=x, context=x, input_dim=build[0])


def probe(B, T, input_dim, key_dim, value_dim):
    sizes = {"B": B, "T": T, "Tq": T, "Tk": T, "Din": input_dim, "E": input_dim, "D": key_dim, "Dv": value_dim}
    return Probe(args=(randn(B, T, input_dim),), build=(input_dim, key_dim, value_dim), sizes=sizes)


def probes():
    return [
        probe(2, 5, 7, 6, 3),
        probe(3, 4, 8, 5, 2),
        probe(6, 6, 9, 3, 5),
        probe(2, 5, 7, 4, 4),  # what takes keys for values raises nowhere
    ]


def scale_by_input_dim(state: State) -> None:
    """Divide the scores by sqrt(input_dim)."""
    state.scores = state.scores / state.input_dim**0.5


def unprojected(name):
    """q, k and v projected, and then x itself in the place of one; an error later where the sizes differ."""

    def wrong(state: State) -> None:
        s.project()(state)
        setattr(state, name, state.x)

    return wrong


PIPELINES = (
    Pipeline(
        entry="SelfAttention",
        module=True,
        begin=begin,
        stages={
            "read": s.nothing,
            "project": s.project(),
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "mask": s.nothing,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "mix": s.mix,
            "back": s.nothing,
        },
        variants=(
            *variants("project.key_for_value", {"project": s.project(v="k_proj")}),
            *ONE_LAYER,
            *variants("project.query_for_value", {"project": s.project(v="q_proj")}),
            *variants("project.value_for_query", {"project": s.project(q="v_proj")}),
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants("project.missing", {"project": unprojected("v")}),
            *variants(
                "layout.batch_as_time",
                {"read": s.samples_as_tokens, "back": s.back_to_batch_first(s.nothing)},
                {"read": s.samples_side_by_side, "back": s.samples_apart},
            ),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.embed_dim", {"scale": scale_by_input_dim}),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants("scale.inverted", {"scale": s.scale_inverted}, {"scale": s.scale_squared_inverted}),
            *variants("scale.floor_division", {"scale": s.scale_floor_division}),
            *variants("scale.after_softmax", {"scale": s.nothing, "rescale": s.scale_weights}),
            *variants("mask.causal", {"mask": s.hide_later_keys}),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over(0)}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
        ),
        probes=probes,
    ),
)


def pictures():
    """x holds three random numbers and a one-hot code of the token. The values are the code: out is the weights."""
    x = torch.cat([randn(1, 4, 3), torch.eye(4, dtype=torch.float64)[None]], dim=-1)  # (1, 4, 7)
    look = torch.zeros(2, 5, 7, dtype=torch.float64)
    look[:, :, :3] = randn(2, 5, 3)
    values = torch.eye(7, dtype=torch.float64)[3:]  # (4, 7)
    parameters = {"q_proj.weight": look[0], "k_proj.weight": look[1], "v_proj.weight": values}
    return (
        Picture(
            entry="SelfAttention",
            what="the weights",
            read=lambda out: out[0],
            args=(x,),
            build=(7, 5, 4),
            parameters=parameters,
        ),
    )
