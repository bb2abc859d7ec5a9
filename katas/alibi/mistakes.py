"""alibi as two pipelines, one for each function, and the ways each stage goes wrong."""

import math

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import MASKINGS, SCALES, SCORES, SOFTMAXES, VALUES
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn

# ----------------------------------------------------------------------------------------------- alibi_slopes(num_heads)


def plain(heads, first=1):
    return 2.0 ** (-8 * (torch.arange(heads, dtype=torch.float64) + first) / heads)


def power_below(heads):
    return 1 << (heads.bit_length() - 1)


def slopes(of_power=plain, others=lambda double: double[::2], of_double=None):
    """The stage that makes `slopes` (H,): those of the power of two below, then `others` of twice as many heads."""

    def stage(state):
        power = power_below(state.H)
        state.slopes = torch.cat([of_power(power), others((of_double or of_power)(2 * power))])[: state.H]

    return stage


def for_any_number(state):
    state.slopes = plain(state.H)


def of_the_power_above(state):
    power = power_below(state.H)
    state.slopes = plain(power if power == state.H else 2 * power)[: state.H]


def halves(heads, ratio=1.0):
    """1/2, 1/4, … whatever the number of heads."""
    return 2.0 ** (-ratio * (torch.arange(heads, dtype=torch.float64) + 1))


def half_ratio(heads):
    return halves(heads, ratio=0.5)


def always_halves(state):
    state.slopes = halves(state.H)


def reversed_heads(state):
    slopes()(state)
    state.slopes = state.slopes.flip(0)


WRONG_SLOPES = (
    *variants(
        "alibi.from_zero",
        {"slopes": slopes(lambda heads: plain(heads, first=0))},
        {"slopes": slopes(lambda heads: plain(heads, first=0), of_double=plain)},
        {"slopes": slopes(of_double=lambda heads: plain(heads, first=0))},
    ),
    *variants("alibi.plain_slopes", {"slopes": for_any_number}),
    *variants("alibi.first_of_double", {"slopes": of_the_power_above}),
    *variants(
        "alibi.other_ones",
        {"slopes": slopes(others=lambda double: double[1::2])},
        {"slopes": slopes(others=lambda double: double)},
    ),
    *variants(
        "alibi.fixed_ratio",
        {"slopes": always_halves},
        {"slopes": slopes(halves)},
        {"slopes": slopes(halves, of_double=half_ratio)},
        {"slopes": slopes(halves, of_double=plain)},
    ),
    *variants("alibi.other_base", {"slopes": slopes(lambda heads: plain(heads) ** (1 / math.log(2)))}),
    *variants("alibi.reversed", {"slopes": reversed_heads}),
)


def returned(state):
    state.out = state.slopes


# --------------------------------------------------------------------------------------------- alibi_attention(q, k, v)


def begin(q, k, v):
    return State(q=q, k=k, v=v, H=q.shape[1], keep=True)  # it hides keys, so each right way of masking is tried


def place(first_query):
    def stage(state):
        Tq, Tk = state.q.shape[-2], state.k.shape[-2]
        p, j = torch.arange(Tq)[:, None] + first_query(Tk - Tq), torch.arange(Tk)
        state.distance, state.ahead, state.keep = (p - j).double(), j - p, j <= p

    return stage


def distance_from_the_first_key(state):
    """For all queries the same: slope * j, as in the authors' code. A softmax over the keys does not see the difference."""
    place(lambda ahead: ahead)(state)
    state.distance = -torch.arange(state.k.shape[-2]).double().expand(state.keep.shape)


def bias_by(rule, *, own=False):
    """The stage that adds a bias (H, Tq, Tk), by slopes (H, 1, 1) and distances (Tq, Tk); `own`: p - j in any case."""

    def stage(state):
        state.scores = state.scores + rule(
            state.slopes[:, None, None], -state.ahead.double() if own else state.distance
        )

    return stage


def penalty_of_weights(*, everywhere):
    """The penalty taken off the weights; those of later keys stay 0, unless `everywhere`."""

    def stage(state):
        distance = state.distance if everywhere else state.distance.masked_fill(state.ahead > 0, 0.0)
        state.weights = state.weights - state.slopes[:, None, None] * distance

    return stage


penalty = bias_by(lambda slope, distance: -slope * distance)


def self_hidden(state):
    state.keep = state.ahead < 0
    s.mask(state)


def next_seen(state):
    state.keep = state.ahead <= 1
    s.mask(state)


def probe(B, H, Tq, Tk, D, Dv):
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv}
    return Probe(args=(randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv)), sizes=sizes)


def probes():
    return [probe(2, 4, 5, 7, 6, 4), probe(3, 3, 5, 5, 7, 8), probe(2, 6, 3, 4, 5, 3)]


PIPELINES = (
    Pipeline(
        entry="alibi_slopes",
        begin=lambda num_heads: State(H=num_heads),
        stages={"slopes": slopes(), "return": returned},
        variants=WRONG_SLOPES,
        probes=lambda: [Probe(args=(H,), sizes={"H": H}) for H in (4, 6, 8, 12)],
    ),
    Pipeline(
        entry="alibi_attention",
        begin=begin,
        stages={
            "slopes": slopes(),
            "place": place(lambda ahead: ahead),
            "score": s.score,
            "early": s.nothing,
            "scale": s.scale_by_head_dim,
            "bias": penalty,
            "sense": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
        },
        variants=(
            *WRONG_SLOPES,
            *variants("mask.top_left", {"place": place(lambda ahead: 0)}),
            *variants("alibi.sign", {"bias": bias_by(lambda slope, distance: slope * distance)}),
            *variants("alibi.scaled", {"early": penalty, "bias": s.nothing}),
            *variants(
                "alibi.absolute",
                {"bias": bias_by(lambda slope, distance: -slope * distance.abs(), own=True), "mask": s.nothing},
            ),
            *variants(
                "alibi.not_causal",
                {"mask": s.nothing},
                {"bias": bias_by(lambda slope, distance: -slope * distance.clamp(min=0), own=True), "mask": s.nothing},
            ),
            *variants("alibi.missing", {"bias": s.nothing}),
            *variants(
                "alibi.one_slope",
                {"bias": bias_by(lambda slope, distance: -distance)},
                {"bias": bias_by(lambda slope, distance: -slope[0] * distance)},
                {"bias": bias_by(lambda slope, distance: -slope[-1] * distance)},
            ),
            *variants(
                "alibi.after_softmax",
                {"bias": s.nothing, "rescale": penalty_of_weights(everywhere=True)},
                {"bias": s.nothing, "rescale": penalty_of_weights(everywhere=False)},
            ),
            *variants("alibi.squared", {"bias": bias_by(lambda slope, distance: -slope * distance**2, own=True)}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.shifted", {"mask": self_hidden}, {"mask": next_seen}),
            *MASKINGS,
            *SCORES,
            *SCALES,
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *SOFTMAXES,
            *VALUES,
        ),
        probes=probes,
        ways=({"place": distance_from_the_first_key},),
    ),
)


def pictures():
    q, k, v = randn(1, 2, 5, 6), randn(1, 2, 7, 6), randn(1, 2, 7, 3)
    return (
        of_function("alibi_attention", (0 * q, k, v), what="the weights of head 0 if all scores are equal, Tq < Tk"),
    )
