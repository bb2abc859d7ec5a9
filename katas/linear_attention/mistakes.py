"""linear_attention as a pipeline, and the ways each stage goes wrong. It makes the (Tq, Tk) weights: only the cost differs."""

import torch
from torch.nn import functional

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn


def begin(q, k, v, causal=False):
    return State(q=q, k=k, v=v, H=q.shape[1], causal=causal)


def phi(x):
    return functional.elu(x) + 1


def features(queries=phi, keys=None):
    """The stage that applies feature maps to queries and keys."""

    def stage(state):
        state.q, state.k = queries(state.q), (keys or queries)(state.k)

    return stage


def scaled(state):
    state.q = state.q / state.q.shape[-1] ** 0.5


def both_scaled(state):
    root = state.q.shape[-1] ** 0.25
    state.q, state.k = state.q / root, state.k / root


def hide(diagonal):
    """The stage that sets the weights of later keys to 0, from this diagonal on."""

    def stage(state):
        if state.causal:
            state.scores = state.scores.tril(diagonal)

    return stage


def divide(by):
    """The stage that mixes the values and divides by `by(state)`, (B, H, Tq or 1, 1)."""

    def stage(state):
        state.out = state.scores @ state.v / by(state)

    return stage


def own_sum(state):
    return state.scores.sum(-1, keepdim=True)


def sum_of_all_keys(state):
    return state.q @ state.k.sum(-2).unsqueeze(-1)


def sum_over_queries(state):
    """Divided before the values are mixed: each key's weights sum to 1 over the queries."""
    state.out = state.scores / state.scores.sum(-2, keepdim=True) @ state.v


def keys_summed_along(dim):
    """The keys' features summed along another dimension than the tokens."""

    def by(state):
        return (state.q * state.k.cumsum(dim)).sum(-1, keepdim=True) if state.causal else own_sum(state)

    return by


def added(value):
    return lambda state: own_sum(state) + value


def softmax(state):
    scores = state.q @ state.k.transpose(-2, -1) / state.q.shape[-1] ** 0.5
    if state.causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    state.out = scores.softmax(-1) @ state.v


def probe(B, H, Tq, Tk, D, Dv, causal):
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv}
    q, k = randn(B, H, Tq, D).clamp(-4, 4), randn(B, H, Tk, D).clamp(-4, 4)
    q[..., 0], k[..., 0] = q[..., 0].abs() + 0.5, k[..., 0].abs() + 0.5  # no denominator is near 0
    return Probe(args=(q, k, randn(B, H, Tk, Dv), causal), sizes=sizes)


def probes():
    return [probe(2, 3, 5, 7, 4, 6, False), probe(2, 3, 5, 5, 4, 6, True), probe(3, 2, 6, 6, 5, 3, True)]


PIPELINES = (
    Pipeline(
        entry="linear_attention",
        begin=begin,
        stages={
            "scale": s.nothing,
            "features": features(),
            "score": s.score,
            "causal": hide(0),
            "divide": divide(own_sum),
        },
        variants=(
            *variants("linear.no_normaliser", {"divide": divide(lambda state: 1.0)}),
            *variants("linear.divided_by_length", {"divide": divide(lambda state: float(state.k.shape[-2]))}),
            *variants("linear.normaliser_not_causal", {"divide": divide(sum_of_all_keys)}),
            *variants(
                "linear.normaliser_axis",
                {"divide": divide(keys_summed_along(1))},
                {"divide": divide(keys_summed_along(0))},
            ),
            *variants("linear.over_queries", {"divide": sum_over_queries}),
            *variants("linear.large_epsilon", {"divide": divide(added(1.0))}),
            *variants(
                "linear.relu",
                {"features": features(functional.relu)},
                {"features": features(lambda x: functional.relu(x) + 1)},
            ),
            *variants("linear.no_plus_one", {"features": features(functional.elu)}),
            *variants("linear.exp", {"features": features(torch.exp)}),
            *variants(
                "linear.softmax_features",
                {"features": features(lambda x: x.softmax(-1), lambda x: x.softmax(-2))},
                {"features": features(lambda x: x.softmax(-1))},
            ),
            *variants(
                "linear.one_side", {"features": features(phi, lambda x: x)}, {"features": features(lambda x: x, phi)}
            ),
            *variants("linear.no_features", {"features": s.nothing}),
            *variants("linear.scaled", {"scale": scaled}, {"scale": both_scaled}),
            *variants("linear.not_causal", {"causal": s.nothing}),
            *variants("linear.exclusive", {"causal": hide(-1)}),
            *variants("mask.shifted", {"causal": hide(1)}),
            *variants(
                "linear.softmax",
                {"features": s.nothing, "score": s.nothing, "causal": s.nothing, "divide": softmax},
            ),
            *variants("score.reshaped", {"score": s.score_reshaped}),
        ),
        probes=probes,
    ),
)

SYMPTOMS = (breaks("linear.whole_matrix", "cost", saying=r"T \* T or more$"),)


def pictures():
    q, k, v = randn(1, 1, 5, 4), randn(1, 1, 5, 4), randn(1, 1, 5, 3)
    return (
        of_function("linear_attention", (q, k, v)),
        of_function("linear_attention", (q, k, v, True), what="the weights with causal=True"),
    )
