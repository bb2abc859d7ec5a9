"""qkv_attention as a pipeline, and the ways each stage goes wrong."""

import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import SPLITS, SPLITS_OF_SOME, WEIGHTS
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks, heads_first
from attn_kata.properties import randn


def begin(parameters, build, query, key, value, mask=None):
    p = (*build, 0.0)[2]
    return State(parameters=parameters, x=query, key=key, value=value, H=build[1], p=p, keep=mask)


def probe(B, Tq, Tk, E, H, mask_shape=None):
    mask = None if mask_shape is None else mostly_true(*mask_shape)
    args = (randn(B, Tq, E), randn(B, Tk, E), randn(B, Tk, E), mask)
    return Probe(args=args, build=(E, H), sizes={"B": B, "Tq": Tq, "Tk": Tk, "E": E, "H": H, "D": E // H})


def mostly_true(*shape):
    """Random booleans, about a third False; no row and no column is all False."""
    place = torch.arange(shape[-2])[:, None] % shape[-1] == torch.arange(shape[-1]) % shape[-2]
    return (
        (torch.rand(*shape) > 0.35) | place | (torch.arange(shape[-1]) == 0) | (torch.arange(shape[-2])[:, None] == 0)
    )


def probes():
    return [
        probe(2, 5, 4, 18, 3),
        probe(3, 4, 6, 10, 2, (3, 2, 4, 6)),
        probe(2, 5, 3, 12, 3, (5, 3)),
        probe(3, 4, 4, 8, 2, (4, 4)),  # as many queries as keys, and as features in a head: little raises here
        probe(2, 4, 5, 12, 3, (3, 4, 5)),
        probe(3, 4, 4, 12, 3, (3, 1, 4, 4)),  # as many samples as heads
    ]


def project(q="q_proj", k="k_proj", v="v_proj", *, sources=("x", "key", "value"), by=s.linear):
    """The stage that makes q, k and v of the inputs by the layers of these names. None is no layer."""

    def stage(state):
        inputs = [getattr(state, source) for source in sources]
        made = [x if name is None else by(state, name, x) for name, x in zip((q, k, v), inputs, strict=True)]
        state.q, state.k, state.v = made

    return stage


# Dimensions that people add to a mask that broadcasts as it is.
WITH_DIMENSIONS = (
    lambda keep: keep.unsqueeze(0),
    lambda keep: keep.unsqueeze(1),
    lambda keep: keep.unsqueeze(1) if keep.dim() == 3 else keep,
)


def keep_weights(state):
    """What is returned beside the result."""
    state.returned = state.weights


def keep_mean(state):
    state.returned = state.weights.mean(dim=1)


def keep_scores(state):
    state.returned = state.scores


def keep_as(layout):
    """The weights in another layout, or some of them."""

    def stage(state):
        state.returned = layout(state.weights)

    return stage


def remembered(stage):
    """The stage that notes the scores as they are before `stage`, which may be all that is returned."""

    def noting(state):
        state.noted = state.scores
        stage(state)

    return noting


def keep_noted(state):
    state.returned = state.noted


def give(state):
    state.out = (state.out, state.returned)


def give_dropped(state):
    """The weights are returned as they are after dropout."""
    state.out = (state.out, state.weights)


PIPELINES = (
    Pipeline(
        entry="MultiHeadAttention",
        module=True,
        begin=begin,
        stages={
            "project": project(),
            "split": s.split_heads,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "keep": keep_weights,
            "drop": s.drop,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": s.project_out,
            "give": give,
        },
        variants=(
            *variants("source.value_from_key", {"project": project(sources=("x", "key", "key"))}),
            *variants("source.key_from_value", {"project": project(sources=("x", "value", "value"))}),
            *variants("source.only_query", {"project": project(sources=("x", "x", "x"))}),
            *variants("source.exchanged", {"project": project(sources=("x", "value", "key"))}),
            *variants("source.queries_from_key", {"project": project(sources=("key", "x", "value"))}),
            *variants("context.swapped", {"project": project(sources=("key", "x", "x"))}),
            *variants("project.key_for_value", {"project": project(v="k_proj")}),
            *variants("mix.keys", {"mix": s.values_are_keys}),
            *variants("project.value_for_key", {"project": project(k="v_proj")}),
            *variants(
                "project.exchanged",
                {"project": project(k="v_proj", v="k_proj")},
                {"project": project(k="v_proj", v="k_proj", sources=("x", "value", "key"))},  # after the layers
            ),
            *variants(
                "project.query_for_key",
                {"project": project(k="q_proj")},
                {"project": project(q="k_proj")},
                *({"project": project(name, name, name)} for name in ("q_proj", "k_proj")),
            ),
            *variants("project.query_for_value", {"project": project(v="q_proj")}),
            *variants("project.value_for_query", {"project": project(q="v_proj")}),
            *variants("project.swapped", {"project": project(q="k_proj", k="q_proj")}),
            *variants(
                "project.missing",
                {"project": project(q=None, k=None, v=None)},
                {"project": project(q=None)},
                {"project": project(k=None)},
                {"project": project(v=None)},
            ),
            *variants(
                "project.weight_transposed",
                {"project": project(by=s.linear_transposed)},
                {"output": s.project_out_transposed},
                {"project": project(by=s.linear_transposed), "output": s.project_out_transposed},
            ),
            *SPLITS_OF_SOME,
            *SPLITS,
            *variants("context.query_length", {"split": s.split_context_by_query_length}),
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
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.fill_weights},
            ),
            *variants("mask.query_axis", {"shape": s.mask_transposed}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants("mask.folded_order", *({"shape": stage} for stage in s.MASKS_FOLDED)),
            *variants(
                "mask.broadcast",
                *({"shape": s.mask_reshaped(by)} for by in WITH_DIMENSIONS),
            ),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over_heads}, {"normalise": s.softmax_over(0)}),
            *variants(
                "softmax.missing",
                {"normalise": s.softmax_missing},
                {"normalise": s.softmax_missing_unmasked},
                {"normalise": s.softmax_if_masked},
            ),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *WEIGHTS,
            *variants(
                "weights.averaged",
                {"keep": keep_mean},
                {"keep": keep_as(lambda weights: weights.mean(1, keepdim=True))},
                {"keep": keep_as(lambda weights: weights.mean(1, keepdim=True).expand_as(weights))},
                {"keep": keep_as(lambda weights: weights.sum(1))},
            ),
            *variants(
                "weights.scores",
                {"keep": keep_scores},
                {"sense": remembered(s.nothing), "keep": keep_noted},
                {"scale": remembered(s.scale_by_head_dim), "keep": keep_noted},
            ),
            *variants(
                "weights.first_head",
                {"keep": keep_as(lambda weights: weights[:, 0])},
                {"keep": keep_as(lambda weights: weights[:, -1])},
            ),
            *variants(
                "weights.layout",
                {"keep": keep_as(lambda weights: weights.transpose(1, 2))},
                {"keep": keep_as(lambda weights: weights.transpose(-2, -1))},
                {"keep": keep_as(lambda weights: weights.flatten(0, 1))},
                {"keep": keep_as(lambda weights: weights.transpose(0, 1))},
                {"keep": keep_as(lambda weights: weights.reshape(-1, weights.shape[0], *weights.shape[2:]))},
            ),
            *variants("weights.after_dropout", {"give": give_dropped}, shows_in_values=False),
            *variants("dropout.never", {"drop": s.nothing}, shows_in_values=False),
            *variants("dropout.always", {"drop": s.drop_always}, shows_in_values=False),
            *variants(
                "dropout.before_softmax", {"mask": s.drop_after(s.mask), "drop": s.nothing}, shows_in_values=False
            ),
            *variants("dropout.renormalised", {"drop": s.drop_renormalised}, shows_in_values=False),
            *variants("dropout.rows", {"drop": s.drop_rows}, shows_in_values=False),
            *variants("dropout.on_values", {"mix": s.mix_dropped_values, "drop": s.nothing}, shows_in_values=False),
            *variants("output.missing", {"output": s.nothing}),
        ),
        probes=probes,
    ),
)


def keeps_with_p(evidence):
    """The rate that was seen is 1 - p."""
    failure = evidence.failures.get("dropout_is_independent")
    told = failure and re.match(r"([\d.]+) of \d+ weights were dropped, with dropout=([\d.]+)", failure.message)
    return 0 if told and abs(float(told[1]) + float(told[2]) - 1) < 0.05 else None


def bounds_the_scores(evidence):
    """Right until the scores are strong, and something bounds them."""
    if "strong_scores" not in evidence.failures or not evidence.values_right:
        return None
    return 0 if re.search(r"clamp|clip|tanh|min\(|minimum", evidence.code) else None


def before_softmax(evidence):
    """Weights that sum to 1 and are never 0: their scores were dropped. The returned weights differ in train() too."""
    failure = evidence.failures.get("dropout_acts_on_weights")
    return 0 if failure and "sum to 1 in train(), and none is 0" in failure.message else None


def after_dropout(evidence):
    """The returned weights differ in train(), and not because the scores were dropped."""
    failure = evidence.failures.get("weights_before_dropout")
    if failure is None or before_softmax(evidence) is not None:
        return None
    return 0 if "dropout_acts_on_weights" in evidence.held or "are 0 that are not" in failure.message else None


SYMPTOMS = (
    breaks("dropout.always", "no_dropout_in_eval"),
    breaks("dropout.never", "something_is_dropped", saying="^nothing is dropped"),
    Symptom(id="dropout.before_softmax", shows=before_softmax),
    breaks("dropout.renormalised", "dropout_acts_on_weights", saying="sum to 1 in train.*some are 0"),
    breaks("dropout.not_rescaled", "dropout_acts_on_weights", saying="not divided by 1 - dropout"),
    breaks("dropout.on_values", "dropout_acts_on_weights", saying="one is dropped and not the other, for all queries"),
    breaks("dropout.on_output", "dropout_acts_on_weights", saying="one is dropped and not the other, for each query"),
    breaks("dropout.shared", "dropout_is_independent", saying=r"\d (?:samples|heads|queries) drop the same in 100%"),
    breaks("dropout.rows", "dropout_is_independent", saying=r"\d keys drop the same in 100%"),
    breaks("dropout.drawn_once", "dropout_is_fresh", saying="^calls 1 and 2 drop the same weights in 100%"),
    Symptom(id="dropout.keep_probability", shows=keeps_with_p),
    Symptom(id="weights.after_dropout", shows=after_dropout),
    Symptom(id="numerics.clamped", shows=bounds_the_scores),
    breaks("arguments.unchecked", "heads_must_divide"),
    Symptom(id="arguments.order", shows=heads_first),
)
