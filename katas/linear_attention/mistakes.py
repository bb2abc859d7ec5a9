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


def scaled_by(queries, keys):
    """The stage that divides q and k by powers of D."""

    def stage(state):
        state.q, state.k = state.q / state.q.shape[-1] ** queries, state.k / state.k.shape[-1] ** keys

    return stage


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


def over_heads_too(state):
    """The keys' features summed over tokens and heads."""
    summed = state.k.cumsum(2) if state.causal else state.k.sum(2, keepdim=True)
    return (state.q * summed.sum(1, keepdim=True)).sum(-1, keepdim=True)


def of_other_keys(diagonal_above=None, diagonal_below=None):
    """The stage that divides sums over other keys than the contract's: None is over all."""

    def stage(state):
        products = state.q @ state.k.transpose(-2, -1)
        above, below = (
            products if diagonal is None or not state.causal else products.tril(diagonal)
            for diagonal in (diagonal_above, diagonal_below)
        )
        state.out = above @ state.v / below.sum(-1, keepdim=True)

    return stage


def one(state):
    return 1.0


def length(state):
    return float(state.k.shape[-2])


def running_length(state):
    """How many keys a query has."""
    count = torch.arange(1.0, state.q.shape[-2] + 1, dtype=torch.float64)[:, None]
    return count if state.causal else length(state)


def in_one_branch(by):
    """`by` for causal calls only, and for the others only: people write the two apart."""

    def only(causal):
        return {"divide": divide(lambda state: by(state) if bool(state.causal) == causal else own_sum(state))}

    return {"divide": divide(by)}, only(True), only(False)


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


OTHER_MAPS = (
    functional.softplus,
    torch.sigmoid,
    torch.square,
    lambda x: functional.relu(x).square(),
    lambda x: functional.selu(x) + 1,
    lambda x: functional.leaky_relu(x) + 1,
    lambda x: functional.gelu(x) + 1,
    lambda x: functional.silu(x) + 1,
    lambda x: torch.tanh(x) + 1,
)

PIPELINES = (
    Pipeline(
        entry="linear_attention",
        begin=begin,
        activated=True,
        stages={
            "scale": s.nothing,
            "features": features(),
            "score": s.score,
            "causal": hide(0),
            "divide": divide(own_sum),
        },
        variants=(
            *variants("linear.no_normaliser", *in_one_branch(one)),
            *variants("linear.divided_by_length", *in_one_branch(length), *in_one_branch(running_length)[:2]),
            *variants("linear.normaliser_not_causal", {"divide": divide(sum_of_all_keys)}),
            *variants("linear.values_not_causal", {"divide": of_other_keys(None, 0)}),
            *variants(
                "linear.normaliser_axis",
                {"divide": divide(keys_summed_along(1))},
                {"divide": divide(keys_summed_along(0))},
                *in_one_branch(over_heads_too),
            ),
            *variants("linear.over_queries", {"divide": sum_over_queries}),
            *variants("linear.large_epsilon", {"divide": divide(added(1.0))}, {"divide": divide(added(0.1))}),
            *variants(
                "linear.relu",
                {"features": features(functional.relu)},
                {"features": features(lambda x: functional.relu(x) + 1)},
            ),
            *variants(
                "linear.no_plus_one",
                {"features": features(functional.elu)},
                {"features": features(functional.elu, phi)},
                {"features": features(phi, functional.elu)},
            ),
            *variants("linear.other_features", *({"features": features(map)} for map in OTHER_MAPS)),
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
            *variants(
                "linear.scaled",
                {"scale": scaled},
                {"scale": both_scaled},
                *({"scale": scaled_by(*powers)} for powers in ((0.5, 0.5), (0, 0.5), (1, 0))),
                {"divide": divide(lambda state: own_sum(state) * state.q.shape[-1] ** 0.5)},
            ),
            *variants("linear.not_causal", {"causal": s.nothing}),
            *variants(
                "linear.exclusive",
                {"causal": hide(-1)},
                {"divide": of_other_keys(-1, 0)},
                {"divide": of_other_keys(0, -1)},
            ),
            *variants("mask.shifted", {"causal": hide(1)}),
            *variants(
                "linear.softmax",
                {"features": s.nothing, "score": s.nothing, "causal": s.nothing, "divide": softmax},
            ),
            *variants("score.reshaped", {"score": s.score_reshaped}),
        ),
        probes=probes,
        ways=({"divide": divide(added(1e-9))},),  # with an epsilon, no keys give 0, and without one NaN
    ),
)

SYMPTOMS = (breaks("linear.whole_matrix", "cost", saying=r"; T \* T is"),)


def pictures():
    q, k, v = randn(1, 1, 5, 4), randn(1, 1, 5, 4), randn(1, 1, 5, 3)
    return (
        of_function("linear_attention", (q, k, v)),
        of_function("linear_attention", (q, k, v, True), what="the weights with causal=True"),
    )
