"""fused_qkv as a pipeline, and the ways each stage goes wrong."""

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import of_heads
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn


def begin(parameters, build, x):
    return State(parameters=parameters, x=x, input_dim=build[0], lead=x.shape[:-1])


def cut(order, by=s.linear):
    """q, k and v as these thirds of the fused projection."""

    def stage(state):
        thirds = by(state, "qkv_proj", state.x).chunk(3, dim=-1)
        state.q, state.k, state.v = (thirds[place] for place in order)

    return stage


def interleaved(state):
    """Rows of the projection taken in turn: q, k, v, q, k, v, …"""
    state.q, state.k, state.v = s.linear(state, "qkv_proj", state.x).unflatten(-1, (-1, 3)).unbind(-1)


def as_it_lies(state):
    """(B, T, 3 D) read as (3, B, T, D): tokens and parts mixed."""
    fused = s.linear(state, "qkv_proj", state.x)
    batch, length, width = fused.shape
    state.q, state.k, state.v = fused.reshape(3, batch, length, width // 3)


def scale_by(width):
    return s.scale(lambda state: float(width(state)) ** 0.5)


def probe(B, T, input_dim, output_dim):
    sizes = {"B": B, "T": T, "Tq": T, "Tk": T, "Din": input_dim, "D": output_dim}
    return Probe(args=(randn(B, T, input_dim),), build=(input_dim, output_dim), sizes=sizes)


def probes():
    return [probe(2, 5, 7, 6), probe(3, 4, 5, 8), probe(6, 6, 9, 3), probe(3, 4, 7, 4)]


PIPELINES = (
    Pipeline(
        entry="FusedQKVSelfAttention",
        module=True,
        begin=begin,
        stages={
            "project": cut((0, 1, 2)),
            "read": s.nothing,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "mask": s.nothing,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "mix": s.mix,
            "output": s.nothing,
        },
        variants=(
            *variants(
                "project.chunk_order",
                *({"project": cut(order)} for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))),
            ),
            *variants("project.interleaved", {"project": interleaved}, {"project": as_it_lies}),
            *variants("project.no_bias", {"project": cut((0, 1, 2), by=s.linear_without_bias)}),
            *variants("project.key_for_value", {"project": cut((0, 1, 1))}),
            *variants("project.query_for_key", {"project": cut((0, 0, 2))}, {"project": cut((1, 1, 2))}),
            *variants("project.query_for_value", {"project": cut((0, 1, 0))}),
            *variants("project.value_for_query", {"project": cut((2, 1, 2))}),
            *variants(
                "layout.batch_as_time",
                {"project": s.across_the_batch(cut((0, 1, 2))), "output": s.back_to_batch_first(s.nothing)},
                {"read": s.all_tokens_together, "output": s.apart_again},
            ),
            *variants("score.not_transposed", {"score": s.score_not_transposed}),
            *variants("mask.causal", {"mask": s.hide_later_keys}),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants(
                "scale.embed_dim",
                {"scale": scale_by(lambda state: state.input_dim)},
                {"scale": scale_by(lambda state: 3 * state.q.shape[-1])},
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
            *variants("scale.after_softmax", {"scale": s.nothing, "rescale": s.scale_weights}),
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
    return (
        of_heads(
            "FusedQKVSelfAttention", (9, 9), heads=1, head_dim=9, length=4, mask=None, fused="qkv_proj", output=None
        ),
    )
