"""online_softmax as two pipelines, and the ways each stage goes wrong."""

import math
import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks
from attn_kata.properties import randn


def begin(q, k, v, mask=None):
    return State(q=q, k=k, v=v, keep=mask)


def probe(*lead, Tq, Tk, D, Dv, masked=False):
    q, k, v = randn(*lead, Tq, D), randn(*lead, Tk, D), randn(*lead, Tk, Dv)
    mask = (torch.rand(*lead, Tq, Tk) < 0.6) | torch.eye(Tq, Tk, dtype=torch.bool) if masked else None
    if mask is not None:
        mask[..., 0] = True
    return Probe(args=(q, k, v, mask), sizes={"Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv})


def probes():
    return [
        probe(2, 3, Tq=5, Tk=6, D=7, Dv=4),
        probe(2, 3, Tq=5, Tk=6, D=7, Dv=4, masked=True),
        probe(2, 2, Tq=4, Tk=4, D=4, Dv=4, masked=True),
        probe(Tq=3, Tk=7, D=2, Dv=5),
    ]


def total(state):
    """The log of the sum of exp of the scores."""
    state.lse = state.scores.logsumexp(-1)


def total_of_unscaled(state):
    state.lse = (state.scores * math.sqrt(state.q.shape[-1])).logsumexp(-1)


def total_unmasked(state):
    """Over all keys, the masked ones too."""
    state.lse = (state.q @ state.k.transpose(-2, -1) / math.sqrt(state.q.shape[-1])).logsumexp(-1)


def without_maximum(state):
    """The maximum is subtracted before exp and not added again."""
    state.lse = (state.scores - state.scores.amax(-1, keepdim=True)).logsumexp(-1)


def maximum(state):
    state.lse = state.scores.amax(-1)


def total_not_logged(state):
    state.lse = state.scores.logsumexp(-1).exp()


def log2(state):
    state.lse = state.lse / math.log(2)


def log2_of_the_sum(state):
    """The maximum in one base, the sum in the other."""
    largest = state.scores.amax(-1, keepdim=True)
    state.lse = (largest + (state.scores - largest).exp().sum(-1, keepdim=True).log2()).squeeze(-1)


def total_masked(state):
    """Over the keys that the mask leaves, though the scores were not masked."""
    scores = state.scores if state.keep is None else state.scores.masked_fill(~state.keep, float("-inf"))
    state.lse = scores.logsumexp(-1)


def key_by_key(rescales_total, rescales_out):
    """The stage that adds key after key to a running sum and result, and may forget to rescale them."""

    def stage(state):
        largest = torch.full_like(state.scores[..., :1], float("-inf"))
        total, out = torch.zeros_like(largest), torch.zeros_like(state.q[..., :1] * state.v[..., :1, :])
        for place in range(state.scores.shape[-1]):
            score = state.scores[..., place : place + 1]
            new = torch.maximum(largest, score)
            shrink, count = (largest - new).exp().nan_to_num(0.0), (score - new).exp().nan_to_num(0.0)
            total = total * (shrink if rescales_total else 1) + count
            out = out * (shrink if rescales_out else 1) + count * state.v[..., place : place + 1, :]
            largest = new
        state.out, state.lse = out / total, (largest + total.log()).squeeze(-1)

    return stage


def mean_of_keys(state):
    state.lse = state.scores.logsumexp(-1) - math.log(state.scores.shape[-1])


def numerator(state):
    """The sum of exp(score - maximum) times the values, not divided."""
    state.out = (state.scores - state.scores.amax(-1, keepdim=True)).exp() @ state.v


def give(state):
    state.out = (state.out, state.lse)


# The merge: a and b are how much the parts count, (..., Tq).


def begin_merge(out_a, lse_a, out_b, lse_b):
    return State(out_a=out_a, lse_a=lse_a, out_b=out_b, lse_b=lse_b)


def merge_probe(*lead, Tq, Dv):
    args = (randn(*lead, Tq, Dv), 2 * randn(*lead, Tq), randn(*lead, Tq, Dv), 2 * randn(*lead, Tq))
    return Probe(args=args, sizes={"Tq": Tq, "Dv": Dv})


def merge_probes():
    return [merge_probe(2, 3, Tq=5, Dv=4), merge_probe(2, 2, Tq=4, Dv=4), merge_probe(Tq=3, Dv=5)]


def counting(count):
    """The stage that makes the weights a and b of the two lse, by `count`."""

    def stage(state):
        state.a, state.b = count(state.lse_a, state.lse_b)

    return stage


def exps(a, b):
    largest = torch.maximum(a, b)
    return (a - largest).exp(), (b - largest).exp()


def mix(state):
    mixed = state.a[..., None] * state.out_a + state.b[..., None] * state.out_b
    state.out = mixed / (state.a + state.b)[..., None]


def mix_undivided(state):
    state.out = state.a[..., None] * state.out_a + state.b[..., None] * state.out_b


def mix_added(state):
    """The two results added."""
    state.out = state.out_a + state.out_b


def merged_lse(combine):
    def stage(state):
        state.lse = combine(state.lse_a, state.lse_b)

    return stage


def shares_of_logs(a, b):
    """The part of the merged lse that each lse is."""
    merged = torch.logaddexp(a, b)
    return a / merged, b / merged


def overflowing(state):
    """exp of the lse as they are."""
    state.a, state.b = state.lse_a.exp(), state.lse_b.exp()


PIPELINES = (
    Pipeline(
        entry="partial_attention",
        begin=begin,
        stages={
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
            "total": total,
            "base": s.nothing,
            "give": give,
        },
        variants=(
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}),
            *variants("scale.inverted", {"scale": s.scale_inverted}, {"scale": s.scale_squared_inverted}),
            *variants("scale.after_softmax", {"scale": s.nothing, "rescale": s.scale_weights}),
            *variants("mask.lost", {"mask": s.nothing}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("mask.query_axis", {"shape": s.mask_transposed}),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.mask_weights, "total": total_masked},
            ),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("lse.unscaled", {"total": total_of_unscaled}),
            *variants("lse.unmasked", {"total": total_unmasked}),
            *variants("lse.without_max", {"total": without_maximum}),
            *variants("lse.max", {"total": maximum}),
            *variants("lse.not_logged", {"total": total_not_logged}),
            *variants("lse.mean", {"total": mean_of_keys}),
            *variants("merge.log2", {"base": log2}, {"total": log2_of_the_sum}),
            *variants("partial.not_divided", {"mix": numerator}),
            *variants(
                "flash.no_rescale",
                *(
                    {"mix": key_by_key(total, out), "total": s.nothing}
                    for total, out in ((False, True), (True, False), (False, False))
                ),
            ),
        ),
        probes=probes,
    ),
    Pipeline(
        entry="merge_partials",
        begin=begin_merge,
        stages={"count": counting(exps), "mix": mix, "lse": merged_lse(torch.logaddexp), "give": give},
        variants=(
            *variants("merge.unweighted", {"count": counting(lambda a, b: (torch.ones_like(a), torch.ones_like(b)))}),
            *variants(
                "merge.of_logs",
                {"count": counting(lambda a, b: (a, b))},
                {"count": counting(shares_of_logs), "mix": mix_undivided},
            ),
            *variants("merge.exchanged", {"count": counting(lambda a, b: exps(b, a))}),
            *variants(
                "merge.log2",
                {"count": counting(lambda a, b: exps(a * math.log(2), b * math.log(2)))},
                {"lse": merged_lse(lambda a, b: torch.logaddexp(a, b) / math.log(2))},
                {
                    "count": counting(lambda a, b: exps(a * math.log(2), b * math.log(2))),
                    "lse": merged_lse(lambda a, b: torch.logaddexp(a * math.log(2), b * math.log(2)) / math.log(2)),
                },
            ),
            *variants("merge.not_divided", {"mix": mix_undivided}),
            *variants("merge.added", {"mix": mix_added}),
            *variants("merge.lse_added", {"lse": merged_lse(torch.add)}),
            *variants("merge.lse_max", {"lse": merged_lse(torch.maximum)}),
            *variants("merge.lse_mean", {"lse": merged_lse(lambda a, b: (a + b) / 2)}),
            *variants("lse.without_max", {"lse": merged_lse(lambda a, b: torch.logaddexp(a, b) - torch.maximum(a, b))}),
            *variants("merge.no_max", {"count": overflowing}, shows_in_values=False),
        ),
        probes=merge_probes,
    ),
)


def overflows(evidence):
    """NaN, infinity or 0 for large scores, in a merge that subtracts no maximum."""
    failure = evidence.failures.get("large_scores")
    if failure is None or not re.search(r"merged.* is (?:nan|-?inf|-?0),", failure.message):
        return None
    return 0


def no_maximum(evidence):
    """NaN or infinity for large scores in a part."""
    failure = evidence.failures.get("large_scores")
    if failure is None or not re.search(r"^(?:out|lse) of large scores.* is (?:nan|-?inf)\b", failure.message):
        return None
    return 0


SYMPTOMS = (
    Symptom(id="numerics.no_max", shows=no_maximum),
    breaks("partial.empty", "empty_rows"),
    breaks("merge.empty_nan", "merge_empty", saying=r" is (?:nan|-?inf)\b"),
    Symptom(id="merge.no_max", shows=overflows),
)


def pictures():
    return (of_function("partial_attention", (randn(1, 1, 4, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3))),)
