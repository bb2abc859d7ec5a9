"""sliding_window as two pipelines, one for each function, and the ways each stage goes wrong."""

import math
import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import MASKINGS, SCALES, SCORES, SOFTMAXES, VALUES
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom
from attn_kata.properties import randn

# ------------------------------------------------ the mask: p (Tq, 1) are the queries' positions, j (Tk,) the keys'


def place(state, *, first=None):
    Tq, Tk, state.window, state.sinks = state.sizes
    state.p = torch.arange(Tq)[:, None] + (Tk - Tq if first is None else first)
    state.j = torch.arange(Tk)
    state.may = state.j <= state.p


def at_the_first_keys(state):
    place(state, first=0)


def may_as_if_square(state):
    """What is hidden counts from the first key, the window from the query's own position."""
    state.may = state.j <= state.p - state.p[0]


def near(rule):
    """By the query's distance to the key, the window and the number of sinks."""

    def stage(state):
        state.near = rule(state.p - state.j, state.window, state.sinks)

    return stage


def near_as_if_square(state):
    """The window counts from the first key, what is hidden from the query's own position."""
    state.near = state.p - state.p[0] - state.j < state.window


def in_blocks(state):
    state.near = state.p // state.window == state.j // state.window


def own_hidden(state):
    state.may = state.j < state.p


def sinks(rule):
    def stage(state):
        state.sink = rule(state.j, state.sinks)

    return stage


def join(rule):
    """By what may be seen at all, what is near, and what is a sink."""

    def stage(state):
        state.keep = rule(state.may, state.near, state.sink) & torch.ones_like(state.may)

    return stage


def window_at_both_sides(rule):
    """The keys of a window around the query: what is near is never hidden. Sinks from before them, or not."""
    for joined in (lambda may, near, sink: near | sink, lambda may, near, sink: near | (may & sink)):
        yield {"near": near(rule), "join": join(joined)}


STAGES = {
    "place": place,
    "own": s.nothing,
    "near": near(lambda back, w, n: back < w),
    "sinks": sinks(lambda j, n: j < n),
    "join": join(lambda may, near, sink: may & (near | sink)),
    "sense": s.nothing,
}
WRONG = (
    *variants("mask.top_left", {"place": at_the_first_keys}, {"own": may_as_if_square}, {"near": near_as_if_square}),
    *variants("mask.shifted", {"own": own_hidden}),
    *variants(
        "window.off_by_one",
        {"near": near(lambda back, w, n: back <= w)},
        {"near": near(lambda back, w, n: back < w - 1)},
    ),
    *variants(
        "window.symmetric",
        *window_at_both_sides(lambda back, w, n: back.abs() < w),
        *window_at_both_sides(lambda back, w, n: back.abs() <= w // 2),
        *window_at_both_sides(lambda back, w, n: back.abs() <= w),
    ),
    *variants("window.sinks_in_window", {"near": near(lambda back, w, n: back < w - n)}),
    *variants("window.chunked", {"near": in_blocks}),
    *variants("window.lost", {"near": near(lambda back, w, n: back == back)}),
    *variants("window.sinks_lost", {"sinks": sinks(lambda j, n: j < 0)}),
    *variants("window.sinks_off_by_one", {"sinks": sinks(lambda j, n: j <= n)}),
    *variants("window.sinks_ahead", {"join": join(lambda may, near, sink: (may & near) | sink)}),
    *variants("window.not_causal", {"join": join(lambda may, near, sink: near | sink)}),
    *variants("window.both_required", {"join": join(lambda may, near, sink: may & near & sink)}),
    *variants("mask.lost", {"join": join(lambda may, near, sink: may | ~may)}),
    *variants("mask.inverted", {"sense": s.mask_inverted}),
)


def begin_mask(num_queries, num_keys, window, sinks=0, device=None):
    return State(sizes=(num_queries, num_keys, window, sinks))


def returned(state):
    state.out = state.keep


def mask_probes():
    cases = ((5, 8, 3, 1), (4, 4, 2, 0), (6, 6, 2, 3), (3, 9, 4, 2), (7, 7, 3, 0))
    return [Probe(args=case, sizes=dict(zip(("Tq", "Tk"), case, strict=False))) for case in cases]


def begin(q, k, v, window, sinks=0):
    return State(q=q, k=k, v=v, H=q.shape[1], sizes=(q.shape[-2], k.shape[-2], window, sinks), keep=True)


def probe(B, H, Tq, Tk, D, Dv, window, sinks):
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv}
    return Probe(args=(randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv), window, sinks), sizes=sizes)


def probes():
    return [
        probe(2, 3, 5, 8, 6, 4, 3, 1),
        probe(3, 2, 7, 7, 5, 6, 2, 3),
        probe(2, 3, 4, 5, 7, 3, 6, 4),  # the last query sees every key: no softmax over other dimensions is all NaN
    ]


def sinks_again(ahead):
    """The stage for keys laid side by side, sinks and window: a sink in the window is there twice. `ahead`: before it, too."""

    def stage(state):
        if ahead:
            state.keep = (state.may & state.near) | state.sink
        s.mask(state)
        twice = state.may & state.near & state.sink
        state.scores = state.scores + math.log(2) * twice

    return stage


PIPELINES = (
    Pipeline(
        entry="sliding_window_mask",
        begin=begin_mask,
        stages={**STAGES, "return": returned},
        variants=WRONG,
        probes=mask_probes,
    ),
    Pipeline(
        entry="sliding_window_attention",
        begin=begin,
        stages={
            **STAGES,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
        },
        variants=(
            *WRONG,
            *variants("window.sinks_twice", {"mask": sinks_again(ahead=False)}, {"mask": sinks_again(ahead=True)}),
            *MASKINGS,
            *SCORES,
            *SCALES,
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *SOFTMAXES,
            *VALUES,
        ),
        probes=probes,
    ),
)


def unchecked(evidence):
    """Attention that loses the sinks gives its mask none to check: that is no mistake of its own."""
    failure = evidence.failures.get("bad_arguments")
    if failure is None:
        return None
    lost = "window.sinks_lost" in evidence.found
    return None if lost and re.match("sliding_window_attention with window=[1-9].* does not", failure.message) else 0


SYMPTOMS = (Symptom(id="window.unchecked", shows=unchecked),)


def pictures():
    q, k, v = randn(1, 1, 7, 6) / 2, randn(1, 1, 7, 6), randn(1, 1, 7, 3)
    return (
        of_function("sliding_window_attention", (q, k, v, 3, 1), what="the weights, with window=3 and sinks=1"),
        of_function("sliding_window_attention", (q[..., :4, :], k, v, 2, 0), what="the weights with Tq < Tk, window=2"),
    )
