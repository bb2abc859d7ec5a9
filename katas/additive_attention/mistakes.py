"""additive_attention as a pipeline, and the ways each stage goes wrong."""

import torch
from torch.nn import functional

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import Picture
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn


def begin(parameters, build, query, keys, values, keep=None):
    return State(
        parameters=parameters,
        query=query,
        keys=keys,
        v=values,
        keep=None if keep is None else keep[:, None, :],
        query_dim=build[0],
        key_dim=build[1],
        hidden_dim=build[2],
    )


def probe(B, Tq, Tk, query_dim, key_dim, hidden_dim, Dv, masked=True):
    keep = None
    if masked:
        keep = torch.rand(B, Tk) > 0.4
        keep[:, 1] = True  # no row is empty
        keep[0, 2] = False
    given = randn(B, Tq, query_dim), randn(B, Tk, key_dim), randn(B, Tk, Dv)
    sizes = {"B": B, "Tq": Tq, "Tk": Tk, "D": hidden_dim, "Dv": Dv}
    return Probe(args=(*given, keep), build=(query_dim, key_dim, hidden_dim), sizes=sizes)


def probes():
    return [
        probe(2, 5, 6, 7, 4, 8, 3),
        probe(3, 6, 4, 5, 8, 7, 2, masked=False),
        probe(2, 5, 5, 6, 6, 7, 6),  # query, key and value alike: what takes one for another raises nowhere
        probe(4, 4, 4, 3, 5, 6, 2),  # nor does what is laid along another dimension
        probe(3, 4, 7, 6, 5, 6, 5),
    ]


# ----------------------------------------------------------------------------------------------------------- scoring


def project(query="q_proj", keys="k_proj"):
    """Query and keys through the layers of these names."""

    def stage(state):
        state.q, state.k = s.linear(state, query, state.query), s.linear(state, keys, state.keys)

    return stage


def pairs(join):
    """Every query with every key, (B, Tq, Tk, hidden_dim), joined by `join`."""

    def stage(state):
        state.pairs = join(state.q[:, :, None], state.k[:, None])

    return stage


def tanh_of_each(q, k):
    return q.tanh() + k.tanh()


def squash(by):
    """The joined pairs through the function `by`."""

    def stage(state):
        state.pairs = by(state.pairs)

    return stage


def softmax_along(dim):
    """The joined pairs through a softmax, which belongs to the scores."""
    return squash(lambda joined: joined.softmax(dim))


def relu_for_softmax(state):
    """The scores without those below 0 as weights: they do not sum to 1."""
    state.weights = state.scores.relu()


def score(state):
    """score_proj of every pair."""
    state.scores = s.linear(state, "score_proj", state.pairs).squeeze(-1)


def score_squashed(state):
    """tanh of score_proj of every pair."""
    state.scores = s.linear(state, "score_proj", state.pairs).squeeze(-1).tanh()


def score_by_sum(state):
    """The sum over hidden_dim, without score_proj."""
    state.scores = state.pairs.sum(-1)


def score_by_mean(state):
    """The mean over hidden_dim, without score_proj."""
    state.scores = state.pairs.mean(-1)


def scale_by(width):
    return s.scale(lambda state: float(width(state)) ** 0.5)


# ----------------------------------------------------------------------------------------------------------- mixing


def mix_keys(state):
    """The keys mixed instead of the values."""
    state.out = state.weights @ state.keys


def mix_projected_keys(state):
    """The projected keys mixed instead of the values."""
    state.out = state.weights @ state.k


ACTIVATIONS = (torch.relu, torch.sigmoid, functional.gelu, functional.silu, functional.softplus, functional.leaky_relu)

PIPELINES = (
    Pipeline(
        entry="AdditiveAttention",
        module=True,
        begin=begin,
        activated=True,
        stages={
            "project": project(),
            "join": pairs(torch.add),
            "squash": squash(torch.tanh),
            "score": score,
            "scale": s.nothing,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "remask": s.nothing,
            "mix": s.mix,
        },
        variants=(
            *variants("project.swapped", {"project": project("k_proj", "q_proj")}),
            *variants(
                "project.query_for_key", {"project": project(keys="q_proj")}, {"project": project(query="k_proj")}
            ),
            *variants("additive.no_tanh", {"squash": s.nothing}),
            *variants("additive.tanh_separately", {"join": pairs(tanh_of_each), "squash": s.nothing}),
            *variants("additive.tanh_last", {"squash": s.nothing, "score": score_squashed}, {"score": score_squashed}),
            *variants(
                "additive.activation",
                *({"squash": squash(by)} for by in ACTIVATIONS),
                *({"squash": softmax_along(dim)} for dim in (-2, 0)),  # over the features, a sum would be 1
            ),
            *variants("additive.product", {"join": pairs(torch.mul)}, {"join": pairs(torch.mul), "squash": s.nothing}),
            *variants("additive.difference", {"join": pairs(torch.sub)}),
            *variants("additive.no_score_proj", {"score": score_by_sum}, {"score": score_by_mean}),
            *variants(
                "scale.unwanted",
                *(
                    {"scale": scale_by(width)}
                    for width in (
                        lambda state: state.hidden_dim,
                        lambda state: state.key_dim,
                        lambda state: state.query_dim,
                        lambda state: state.v.shape[-1],
                        lambda state: state.keys.shape[-2],
                    )
                ),
            ),
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
            *variants("softmax.head_axis", {"normalise": s.softmax_over(0)}),
            *variants("softmax.size_one", {"normalise": s.softmax_over_one}, {"normalise": s.softmax_ones}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants(
                "softmax.missing",
                {"normalise": s.softmax_missing},
                {"normalise": s.softmax_missing_unmasked},
                {"normalise": relu_for_softmax},
            ),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *variants("mix.keys", {"mix": mix_keys}, {"mix": mix_projected_keys}),
        ),
        probes=probes,
    ),
)


def pictures():
    """The values are unit vectors: the output is the weights."""
    build = 5, 6, 7
    parameters = {"q_proj.weight": randn(7, 5), "k_proj.weight": randn(7, 6), "score_proj.weight": randn(1, 7)}
    query, keys, values = randn(1, 4, 5), randn(1, 5, 6), torch.eye(5, dtype=torch.float64)[None]
    keep = torch.tensor([[True, True, True, True, False]])
    return (
        Picture(
            entry="AdditiveAttention",
            what="the weights, the last key hidden",
            read=lambda out: out[0],
            args=(query, keys, values, keep),
            build=build,
            parameters=parameters,
        ),
    )
