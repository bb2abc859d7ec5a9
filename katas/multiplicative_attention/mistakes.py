"""multiplicative_attention as a pipeline, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import Picture
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn


def begin(parameters, build, query, keys, values, keep=None):
    return State(parameters=parameters, q=query, keys=keys, v=values, keep=None if keep is None else keep[:, None])


def probe(B, Tq, Tk, query_dim, key_dim, Dv, masked=True):
    keep = None
    if masked:
        keep = torch.rand(B, Tk) > 0.4
        keep[:, 1] = True  # no row is empty
        keep[0, 2] = False
    query = 0.4 * randn(B, Tq, query_dim)  # scores of about 1
    sizes = {"B": B, "Tq": Tq, "Tk": Tk, "D": query_dim, "Dv": Dv}
    return Probe(args=(query, randn(B, Tk, key_dim), randn(B, Tk, Dv), keep), build=(query_dim, key_dim), sizes=sizes)


def probes():
    return [
        probe(2, 5, 6, 7, 8, 4),
        probe(3, 6, 4, 5, 9, 2),
        probe(2, 5, 5, 6, 6, 6),  # all alike: what takes one size for another raises nowhere
        probe(4, 4, 4, 3, 7, 5),  # nor does a mask that is broadcast over samples
        probe(3, 4, 7, 8, 5, 6, masked=False),
    ]


def project(state):
    """The keys through k_proj."""
    state.k = s.linear(state, "k_proj", state.keys)


def unprojected(state):
    """The keys as they came: an error later unless query_dim is key_dim."""
    state.k = state.keys


def scale_by_key_dim(state):
    """Divide the scores by sqrt(key_dim)."""
    state.scores = state.scores / state.keys.shape[-1] ** 0.5


def scale_without_root(state):
    """Divide the scores by query_dim."""
    state.scores = state.scores / state.q.shape[-1]


def keys_by_query_length(state):
    """Projected keys and values read with the queries' length: an error where the lengths differ."""
    state.k, state.v = (part.reshape(*state.q.shape[:2], part.shape[-1]) for part in (state.k, state.v))


def raw_keys_mixed(state):
    """The keys mixed instead of the values, as they came."""
    state.out = state.weights @ state.keys


PIPELINES = (
    Pipeline(
        entry="MultiplicativeAttention",
        module=True,
        begin=begin,
        stages={
            "project": project,
            "read": s.nothing,
            "score": s.score,
            "scale": s.nothing,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "remask": s.nothing,
            "mix": s.mix,
        },
        variants=(
            *variants(
                "scale.unwanted",
                {"scale": s.scale_by_head_dim},
                {"scale": scale_by_key_dim},
                {"scale": scale_without_root},
                {"scale": s.scale_by_value_dim},
            ),
            *variants("project.missing", {"project": unprojected}),
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants("context.query_length", {"read": keys_by_query_length}),
            *variants("mix.keys", {"mix": s.values_are_keys}, {"mix": raw_keys_mixed}),
            *variants("mask.lost", {"mask": s.nothing}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.fill_weights},
            ),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants("mask.right_padding_only", {"mask": s.mask_right_padding_only}),
            *variants("mask.query_axis", {"shape": s.mask_transposed}),
            *variants("mask.broadcast", {"shape": s.mask_reshaped(lambda keep: keep[:, 0])}),
            *variants("mask.causal", *({"mask": stage} for stage in s.MASKS_AND_CAUSAL)),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over(None)}),
            *variants("softmax.size_one", {"normalise": s.softmax_over_one}, {"normalise": s.softmax_ones}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}, {"normalise": s.softmax_missing_unmasked}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
        ),
        probes=probes,
    ),
)


def pictures():
    keep = torch.tensor([[True, True, True, False, True]])
    unit = torch.eye(5, dtype=torch.float64)[None]  # the values are unit vectors, so that the output is the weights
    return (
        Picture(
            entry="MultiplicativeAttention",
            what="the weights",
            read=lambda out: out[0],
            args=(0.5 * randn(1, 4, 6), randn(1, 5, 3), unit, keep),
            build=(6, 3),
            parameters={"k_proj.weight": 0.6 * randn(6, 3)},
        ),
    )
