"""attention_dropout as a pipeline, and the ways each stage goes wrong. The probes do not train: dropout shows in symptoms."""

import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks
from attn_kata.properties import randn


def begin(q, k, v, p, training):
    return State(q=q, k=k, v=v, p=p, training=training, lead=q.shape[:-1], H=q.shape[1])


def probe(B, H, Tq, Tk, D, Dv):
    q, k, v = randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv)
    return Probe(args=(q, k, v, 0.0, False), sizes={"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv})


def probes():
    return [
        probe(2, 3, 5, 6, 7, 4),
        probe(3, 2, 6, 4, 5, 8),
        probe(2, 3, 5, 5, 6, 6),  # alike: what takes one size for another raises nowhere
    ]


def check(state):
    """ValueError unless 0 <= p < 1."""
    if not 0 <= state.p < 1:
        raise ValueError(f"p is {state.p}")


def check_in_training(state):
    """The check, in training only."""
    if state.training:
        check(state)


def check_as_torch(state):
    """p = 1 let through, as torch's dropout does."""
    if state.p != 1:
        check(state)


def drop(shape=lambda weights: weights.shape, chance=lambda p: p, factor=lambda p: 1 / (1 - p)):
    """Dropout on the weights: drawn in a shape, with a chance, and kept ones times a factor."""

    def stage(state):
        if state.training and state.p > 0:
            kept = torch.rand(shape(state.weights), dtype=torch.float64, device=state.weights.device) >= chance(state.p)
            state.weights = state.weights * kept * factor(state.p)

    return stage


def one_for(axis):
    """A shape with 1 at this axis: one draw for all of it."""
    return lambda weights: [1 if place == axis else size for place, size in enumerate(weights.shape)]


PIPELINES = (
    Pipeline(
        entry="attention_with_dropout",
        begin=begin,
        stages={
            "check": check,
            "read": s.nothing,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "disturb": s.nothing,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "drop": drop(),
            "mix": s.mix,
            "shape": s.nothing,
        },
        variants=(
            *variants(
                "arguments.unchecked",
                {"check": s.nothing},
                {"check": check_in_training},
                {"check": check_as_torch},
                shows_in_values=False,
            ),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.embed_dim", {"scale": s.scale_by_embed_dim}),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}, {"scale": s.scale_by_query_length}),
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants("scale.inverted", {"scale": s.scale_inverted}, {"scale": s.scale_squared_inverted}),
            *variants("scale.floor_division", {"scale": s.scale_floor_division}),
            *variants(
                "scale.after_softmax",
                {"scale": s.nothing, "rescale": s.scale_weights},
                {"scale": s.nothing, "rescale": s.scale_weights_by_embed_dim},
            ),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over(1)}, {"normalise": s.softmax_over(0)}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *variants("dropout.never", {"drop": s.nothing}, shows_in_values=False),
            *variants("dropout.always", {"drop": s.drop_always}, shows_in_values=False),
            *variants(
                "dropout.before_softmax", {"disturb": s.drop_after(s.nothing), "drop": s.nothing}, shows_in_values=False
            ),
            *variants("dropout.renormalised", {"drop": s.drop_renormalised}, shows_in_values=False),
            *variants("dropout.rows", {"drop": s.drop_rows}, shows_in_values=False),
            *variants("dropout.on_values", {"mix": s.mix_dropped_values, "drop": s.nothing}, shows_in_values=False),
            *variants("dropout.on_output", {"drop": s.nothing, "shape": s.drop_output}, shows_in_values=False),
            *variants("dropout.not_rescaled", {"drop": drop(factor=lambda p: 1)}, shows_in_values=False),
            *variants(
                "dropout.keep_probability",
                {"drop": drop(chance=lambda p: 1 - p, factor=lambda p: 1 / p)},
                {"drop": drop(chance=lambda p: 1 - p)},
                {"drop": drop(factor=lambda p: 1 / p)},
                shows_in_values=False,
            ),
            *variants(
                "dropout.shared", *({"drop": drop(shape=one_for(axis))} for axis in range(3)), shows_in_values=False
            ),
            *variants("mix.keys", {"mix": s.values_are_keys}),
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants("context.query_length", {"read": s.context_by_query_length}),
            *variants("layout.batch_as_time", {"read": s.all_tokens_together, "shape": s.apart_again}),
        ),
        probes=probes,
        beside={"dropout.renormalised": {"drop": s.renormalise}},
    ),
)


def drops_the_values(evidence):
    """Features of one key are dropped for all queries at once; a feature of the output would be lost for every key, too."""
    failure = evidence.failures.get("dropout_acts_on_weights")
    if failure is None or "for the same features in every query" not in failure.message:
        return None
    return None if re.search(r"(?:feature_dropout|[dD]ropout[123]d)\b", evidence.code) else 0


SYMPTOMS = (
    breaks("arguments.unchecked", "p_is_checked"),
    breaks("dropout.always", "evaluation_drops_nothing", saying="give different results"),
    breaks("dropout.never", "something_is_dropped", saying="^nothing is dropped"),
    breaks("dropout.never", "dropout_acts_on_weights", saying="nothing is dropped"),
    breaks("dropout.on_output", "dropout_acts_on_weights", saying="for single features"),
    breaks("dropout.before_softmax", "identical_keys", saying="no weight is 0.*of 2 sizes and sum to 1"),
    breaks("dropout.before_softmax", "identical_keys", saying="no weight is 0.*sum to 1, and some are alike"),
    breaks(
        "dropout.renormalised",
        "what_is_dropped_is_missing",
        saying="and some are 0",
        unless_held="dropout_acts_on_weights",
    ),
    breaks("dropout.not_rescaled", "dropout_acts_on_weights", saying="not divided"),
    breaks("dropout.not_rescaled", "average", saying=r"sum to 0\.2[456]\d in training"),  # (1 - p) * (1 - p)
    breaks("dropout.keep_probability", "dropout_acts_on_weights", saying="divided by p"),
    # torch.rand(...) <= p keeps nothing where p is 0, and half of the weights where it is 0.5.
    breaks("dropout.keep_probability", "zero_probability", saying="is 0, expected", unless_held="dropout_rate"),
    breaks(
        "dropout.keep_probability", "dropout_rate", saying=r"^0\.(?:9|89)\d+ of \d+ weights were dropped, with p=0\.1"
    ),
    breaks("dropout.shared", "dropout_is_independent", saying=r"\d (?:samples|heads|queries) agree in (?:9\d|100)%"),
    breaks("dropout.rows", "dropout_is_independent", saying=r"\d keys agree in (?:9\d|100)%"),
    breaks("dropout.drawn_once", "dropout_is_fresh", saying="^calls 1 and 2 drop the same weights in 100%"),
    Symptom(id="dropout.on_values", shows=drops_the_values),
)


def pictures():
    return (
        of_function("attention_with_dropout", (randn(1, 1, 4, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3), 0.5, False)),
    )
