"""mha as a pipeline, and the ways each stage goes wrong."""

import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import EXCHANGED, LAYERS, ONE_LAYER, OUTPUTS, SPLITS, WEIGHTS
from attn_kata.diagnosis.pictures import of_heads, of_layout
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks, heads_first
from attn_kata.properties import randn


def begin(parameters, build, x, mask=None):
    return State(parameters=parameters, x=x, context=x, H=build[1], p=(*build, 0.0)[2], keep=mask)


def mostly_true(*shape):
    """Random booleans, about a third False, the diagonal True where there is one: no row is empty, also transposed."""
    keep = torch.rand(*shape) > 0.35
    if shape[-2] == shape[-1]:
        keep = keep | torch.eye(shape[-1], dtype=torch.bool)
    return keep


def probe(B, T, E, H, mask_shape=None):
    mask = None if mask_shape is None else mostly_true(*mask_shape)
    return Probe(
        args=(randn(B, T, E), mask), build=(E, H), sizes={"B": B, "T": T, "Tq": T, "Tk": T, "E": E, "H": H, "D": E // H}
    )


def probes():
    return [
        probe(2, 5, 12, 3, (2, 1, 5, 5)),
        probe(2, 5, 12, 3),
        probe(3, 4, 10, 2, (3, 2, 4, 4)),
        probe(3, 7, 15, 5, (7, 7)),
        probe(2, 4, 6, 3, (3, 4, 4)),
        probe(3, 4, 8, 2, (4, 4)),  # as many tokens as features in a head: a product without a transpose raises nowhere
        probe(3, 4, 12, 3, (3, 1, 4, 4)),  # as many samples as heads: a mask with a dimension of its own raises nowhere
        probe(1, 4, 10, 2, (1, 1, 4, 4)),  # nor where there is one sample
    ]


# Dimensions that people add to a mask that broadcasts as it is.
WITH_DIMENSIONS = (
    lambda keep: keep.unsqueeze(0),
    lambda keep: keep.unsqueeze(1),
    lambda keep: keep.unsqueeze(1) if keep.dim() == 3 else keep,
    lambda keep: keep[None, None],
    lambda keep: keep[:, None, None, :],  # for a mask (B, T)
)


PIPELINES = (
    Pipeline(
        entry="MultiHeadAttention",
        module=True,
        begin=begin,
        stages={
            "read": s.nothing,
            "project": s.project(),
            "split": s.split_heads,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "drop": s.drop,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": s.project_out,
            "back": s.nothing,
        },
        variants=(
            *variants("project.key_for_value", {"project": s.project(v="k_proj")}),
            *variants("project.value_for_key", {"project": s.project(k="v_proj")}),
            *ONE_LAYER,
            *variants("project.query_for_value", {"project": s.project(v="q_proj")}),
            *variants("project.value_for_query", {"project": s.project(q="v_proj")}),
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants(
                "project.chained", {"project": s.project_in_a_chain("q")}, {"project": s.project_in_a_chain("k")}
            ),
            *EXCHANGED,
            *variants(
                "project.missing",
                {"project": s.project(q=None, k=None, v=None)},
                {"project": s.project(q=None)},
                {"project": s.project(k=None)},
                {"project": s.project(v=None)},
            ),
            *LAYERS,
            *variants(
                "layout.batch_as_time",
                {"read": s.samples_as_tokens, "back": s.back_to_batch_first(s.nothing)},
                {"read": s.samples_side_by_side, "back": s.samples_apart},
            ),
            *SPLITS,
            *variants(
                "merge.wrong_transpose",
                {"merge": s.merge_transposed_last},
                *({"merge": s.merge_in_order(*order)} for order in s.WRONG_MERGES),
            ),
            *variants("score.not_transposed", {"score": s.score_not_transposed}),
            *variants("score.reshaped", {"score": s.score_reshaped}),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.embed_dim", {"scale": s.scale_by_embed_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}),
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants(
                "scale.inverted",
                {"scale": s.scale_inverted},
                {"scale": s.scale_squared_inverted},
                {"scale": s.scale_inverted_embed_dim},
            ),
            *variants("scale.floor_division", {"scale": s.scale_floor_division}),
            *variants(
                "scale.after_softmax",
                {"scale": s.nothing, "rescale": s.scale_weights},
                {"scale": s.nothing, "rescale": s.scale_weights_by_embed_dim},
            ),
            *variants("mask.lost", {"mask": s.nothing}, {"mask": s.mask_made_and_lost}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.fill_weights},
            ),
            *variants("mask.query_axis", {"shape": s.mask_transposed}),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants("mask.causal", *({"mask": stage} for stage in s.MASKS_AND_CAUSAL)),
            *variants(
                "mask.broadcast",
                *({"shape": s.mask_reshaped(by)} for by in WITH_DIMENSIONS),
                {"shape": s.mask_reshaped(lambda keep: keep.unsqueeze(1)), "merge": s.merge_to_any_length},
            ),
            *variants("mask.folded_order", *({"shape": stage} for stage in s.MASKS_FOLDED)),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants(
                "softmax.head_axis",
                {"normalise": s.softmax_over_heads},
                {"normalise": s.softmax_over(0)},
                {"normalise": s.softmax_over_lead},
            ),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants(
                "softmax.missing",
                {"normalise": s.softmax_missing},
                {"normalise": s.softmax_missing_unmasked},
                {"normalise": s.softmax_if_masked},
            ),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *variants("dropout.never", {"drop": s.nothing}, shows_in_values=False),
            *variants("dropout.always", {"drop": s.drop_always}, shows_in_values=False),
            *variants(
                "dropout.before_softmax", {"mask": s.drop_after(s.mask), "drop": s.nothing}, shows_in_values=False
            ),
            *variants("dropout.renormalised", {"drop": s.drop_renormalised}, shows_in_values=False),
            *variants("dropout.rows", {"drop": s.drop_rows}, shows_in_values=False),
            *variants("dropout.on_values", {"mix": s.mix_dropped_values, "drop": s.nothing}, shows_in_values=False),
            *OUTPUTS,
        ),
        probes=probes,
        beside={"dropout.renormalised": {"drop": s.renormalise}},
    ),
)


def keeps_with_p(evidence):
    """The rate that was seen is 1 - p."""
    failure = evidence.failures.get("dropout_rate")
    told = failure and re.match(r"([\d.]+) of \d+ weights were dropped, with dropout=([\d.]+)", failure.message)
    return 0 if told and abs(float(told[1]) + float(told[2]) - 1) < 0.05 else None


def drops_the_result(evidence):
    """Features of one query are dropped one by one: the result is, unless the values are."""
    failure = evidence.failures.get("dropout_acts_on_weights")
    if failure is None or "of two numbers that one weight multiplies" not in failure.message:
        return None
    return (
        0
        if drops_the_values(evidence) is None and not re.search(r"drop\w*\((?:self\.)?v\w*\b", evidence.code)
        else None
    )


def drops_the_values(evidence):
    """Features of one key are dropped for all queries at once; a feature of the output would be lost for every key, too."""
    failure = evidence.failures.get("dropout_acts_on_weights")
    if failure is None or "and not the other, for all queries the same" not in failure.message:
        return None
    return None if re.search(r"(?:feature_dropout|[dD]ropout[123]d)\b", evidence.code) else 0


def bounds_the_scores(evidence):
    """Right until the scores are strong, and something bounds them."""
    if "strong_scores" not in evidence.failures or not evidence.values_right:
        return None
    return 0 if re.search(r"clamp|clip|tanh|min\(|minimum", evidence.code) else None


SYMPTOMS = (
    breaks("dropout.always", "no_dropout_in_eval"),
    breaks("dropout.never", "something_is_dropped", saying="^nothing is dropped"),
    breaks("dropout.never", "dropout_acts_on_weights", saying="^nothing is dropped"),
    breaks("dropout.before_softmax", "dropout_acts_on_weights", saying="none is 0, but several of one .* are alike"),
    breaks(
        "dropout.renormalised",
        "what_is_dropped_is_missing",
        saying="and some are 0",
        unless_held="dropout_acts_on_weights",
    ),
    breaks("dropout.not_rescaled", "dropout_acts_on_weights", saying="not divided by 1 - dropout"),
    breaks(
        "dropout.shared", "dropout_is_independent", saying=r"\d (?:samples|heads|queries) drop the same in (?:9\d|100)%"
    ),
    breaks("dropout.rows", "dropout_is_independent", saying=r"\d keys drop the same in (?:9\d|100)%"),
    breaks("dropout.drawn_once", "dropout_is_fresh", saying="^calls 1 and 2 drop the same weights in 100%"),
    Symptom(id="dropout.on_values", shows=drops_the_values),
    breaks("arguments.unchecked", "heads_must_divide"),
    Symptom(id="dropout.keep_probability", shows=keeps_with_p),
    Symptom(id="dropout.on_output", shows=drops_the_result),
    Symptom(id="numerics.clamped", shows=bounds_the_scores),
    Symptom(id="arguments.order", shows=heads_first),
)


def pictures():
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    return (
        of_heads("MultiHeadAttention", (12, 2), heads=2, head_dim=6, length=4, mask=causal),
        of_layout("MultiHeadAttention", (6, 2), heads=2, head_dim=3, length=4),
    )
