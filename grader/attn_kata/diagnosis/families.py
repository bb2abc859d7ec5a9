"""The usual mistakes of softmax attention, as variants for a pipeline with the library's stages under their usual names.

    stages={"score": s.score, "scale": s.scale_by_head_dim, "mask": s.mask, "normalise": s.softmax_over_keys,
            "rescale": s.nothing, "remask": s.nothing, "mix": s.mix},
    variants=(*SCORES, *SCALES, *MASKINGS, *SOFTMAXES, ...),

A kata adds those of its own. SCALES needs `state.H`; every family needs the stages that its comment names.
"""

from __future__ import annotations

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Variant, variants

# project, output: layers of a module, used by their weights
LAYERS: tuple[Variant, ...] = (
    *variants(
        "project.weight_transposed",
        {"project": s.project(by=s.linear_transposed)},
        *({"project": s.project(by=s.only([name], s.linear_transposed))} for name in ("q_proj", "k_proj", "v_proj")),
        {"output": s.project_out_transposed},
        {"project": s.project(by=s.linear_transposed), "output": s.project_out_transposed},
    ),
    *variants(  # without that of k_proj alone, the softmax gives the same weights
        "project.no_bias",
        {"output": s.project_out_without_bias},
        *({"project": s.project(by=s.only([name], s.linear_without_bias))} for name in ("q_proj", "v_proj")),
        {"project": s.project(by=s.linear_without_bias)},
        {"project": s.project(by=s.linear_without_bias), "output": s.project_out_without_bias},
    ),
)

# output: o_proj
OUTPUTS: tuple[Variant, ...] = (
    *variants("output.residual", {"output": s.with_residual(s.project_out)}),
    *variants("output.missing", {"output": s.nothing}),
)

# split, merge: heads that stay behind the tokens, (B, T, H, D), so that the heads of one token attend to each other
BEHIND_TOKENS: tuple[Variant, ...] = variants(
    "split.order",
    {"split": s.split_behind_tokens, "merge": s.merge_behind_tokens},
    {"split": s.split_behind_tokens, "merge": s.merge_behind_tokens_transposed},
)

# split, merge: q, k and v (B, T, E) to heads and back
SPLITS: tuple[Variant, ...] = (
    *BEHIND_TOKENS,
    *variants(
        "split.no_transpose",
        {"split": s.split_no_transpose},
        *({"split": stage} for stage in s.split_one_by(s.as_it_lies)),
    ),
    *variants(
        "split.interleaved",
        {"split": s.split_interleaved},
        {"split": s.split_interleaved, "merge": s.merge_interleaved},
        *({"split": stage} for stage in s.split_one_by(s.in_turn_columns)),
    ),
    *variants("split.head_order", *({"split": stage} for stage in s.split_one_by(s.last_head_first))),
    *variants(
        "split.heads_for_size", {"split": s.split_by_size}, {"split": s.split_by_size, "scale": s.scale_by_number_split}
    ),
    *variants("merge.no_transpose", {"merge": s.merge_no_transpose}, {"merge": s.merge_heads_first_no_transpose}),
    *variants("merge.interleaved", {"merge": s.merge_interleaved}),
    *variants("merge.head_order", *({"merge": s.merge_head_order(order)} for order in s.HEAD_ORDERS)),
    *variants("merge.folded_order", {"merge": s.merge_samples_as_heads}, {"merge": s.merge_heads_as_samples}),
)

# The layers in the places of q, k and v, in the orders that move the values.
ORDERS = (
    ("q_proj", "v_proj", "k_proj"),
    ("v_proj", "k_proj", "q_proj"),
    ("k_proj", "v_proj", "q_proj"),
    ("v_proj", "q_proj", "k_proj"),
)
EXCHANGED = variants("project.exchanged", *({"project": s.project(*order)} for order in ORDERS))

# One layer for q and k, or for all three.
ONE_LAYER = variants(
    "project.query_for_key",
    *(
        {"project": s.project(*layers)}
        for layers in (
            ("q_proj", "q_proj", "v_proj"),
            ("k_proj", "k_proj", "v_proj"),
            *((name,) * 3 for name in ("q_proj", "k_proj")),
        )
    ),
)

# score
SCORES: tuple[Variant, ...] = (
    *variants("score.reshaped", {"score": s.score_reshaped}),
    *variants("project.swapped", {"score": s.score_swapped}),
)

# score: queries with queries, or keys with keys
ONE_TENSOR: tuple[Variant, ...] = variants(
    "score.same_tensor", {"score": s.score_of_queries}, {"score": s.score_of_keys}
)

# scale, mix: where keys and values are arguments
VALUES: tuple[Variant, ...] = (
    *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
    *variants("mix.keys", {"mix": s.values_are_keys}),
)

# scale, rescale
SCALES: tuple[Variant, ...] = (
    *variants("scale.missing", {"scale": s.nothing}),
    *variants("scale.embed_dim", {"scale": s.scale_by_embed_dim}),
    *variants("scale.key_length", {"scale": s.scale_by_key_length}),
    *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
    *variants("scale.inverted", {"scale": s.scale_inverted}, {"scale": s.scale_squared_inverted}),
    *variants("scale.floor_division", {"scale": s.scale_floor_division}),
    *variants(
        "scale.after_softmax",
        {"scale": s.nothing, "rescale": s.scale_weights},
        {"scale": s.nothing, "rescale": s.scale_weights_by_embed_dim},
    ),
)

# normalise, mix: a softmax written out, and the weights in the mix
WEIGHTS: tuple[Variant, ...] = (
    *variants("softmax.query_axis", {"normalise": s.softmax_summed_over(-2)}),
    *variants("softmax.head_axis", {"normalise": s.softmax_summed_over(0)}, {"normalise": s.softmax_summed_over(-3)}),
    *variants("softmax.not_exp", {"normalise": s.softmax_of(torch.sigmoid)}),
    *variants("softmax.not_normalised", *({"normalise": s.softmax_not_divided(shifted)} for shifted in (True, False))),
    *variants("mix.transposed", {"mix": s.mix_transposed}),
    *variants("mix.own_values", *({"mix": s.mix_by(weight)} for weight in (s.row_sums, s.own_weights, s.column_sums))),
)

# normalise
SOFTMAXES: tuple[Variant, ...] = (
    *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
    *variants("softmax.head_axis", {"normalise": s.softmax_over_heads}, {"normalise": s.softmax_over(0)}),
    *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
    *variants("softmax.missing", {"normalise": s.softmax_missing}, {"normalise": s.softmax_missing_unmasked}),
    *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
)

# group: query heads that share key-value heads, state.G of them
GROUPS: tuple[Variant, ...] = (
    *variants("group.repeated", {"group": s.group_by(s.in_turn)}),
    *variants(
        "group.mismatched",
        {"group": s.group_by(s.neighbours_share, s.in_turn)},
        {"group": s.group_by(s.in_turn, s.neighbours_share)},
    ),
    *variants(
        "group.first_only",
        {"group": s.group_by(s.first_only)},
        {"group": s.group_by(s.first_only, s.neighbours_share)},
        {"group": s.group_by(s.neighbours_share, s.first_only)},
    ),
    *variants(
        "group.averaged",
        {"group": s.group_by(s.mean_of_all)},
        {"group": s.queries_averaged},
        {"group": s.group_by(s.mean_of_all, s.neighbours_share)},
        {"group": s.group_by(s.neighbours_share, s.mean_of_all)},
    ),
    *variants("group.tokens_mixed", {"group": s.group_by(s.tokens_mixed)}),
    *variants("group.count_for_size", {"group": s.group_by(s.by_count)}),
)

# split: one or two of queries, keys and values. Where the first mistake of all three is, each kata says itself.
SPLITS_OF_SOME: tuple[Variant, ...] = variants(
    "split.no_transpose",
    *({"split": s.split_some_no_transpose(*names)} for names in (("k", "v"), ("q",), ("k",), ("v",), ("q", "k"))),
)

# mask, remask: how a mask is applied, not which keys it names
MASKINGS: tuple[Variant, ...] = (
    *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
    *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
    *variants(
        "mask.after_softmax",
        {"mask": s.nothing, "remask": s.mask_weights},
        {"mask": s.nothing, "remask": s.fill_weights},
    ),
)

# Dimensions that people add to a mask that broadcasts as it is.
_ADDED_DIMENSIONS = (
    lambda keep: keep.unsqueeze(0),
    lambda keep: keep.unsqueeze(1),
    lambda keep: keep[None, None],
    lambda keep: keep[:, None, None, :],
)

# sense, shape, mask: a mask that is an argument
GIVEN_MASKS: tuple[Variant, ...] = (
    *variants("mask.lost", {"mask": s.nothing}),
    *variants("mask.inverted", {"sense": s.mask_inverted}),
    *variants("mask.query_axis", {"shape": s.mask_transposed}),
    *variants("mask.added", {"mask": s.mask_added}),
    *variants("mask.causal", *({"mask": stage} for stage in s.MASKS_AND_CAUSAL)),
    *variants("mask.broadcast", *({"shape": s.mask_reshaped(by)} for by in _ADDED_DIMENSIONS)),
)

# merge, output: heads side by side, and o_proj
MERGES: tuple[Variant, ...] = (
    *variants("merge.no_transpose", {"merge": s.merge_no_transpose}),
    *variants(
        "merge.wrong_transpose",
        {"merge": s.merge_transposed_last},
        *({"merge": s.merge_in_order(*order)} for order in s.WRONG_MERGES),
    ),
    *variants("merge.interleaved", {"merge": s.merge_interleaved}),
    *variants("output.missing", {"output": s.nothing}),
)

# frequencies, places, unit, turn: stages that set the rules of a rotation
ROTATIONS: tuple[Variant, ...] = (
    *variants(
        "rope.exponent",
        {"frequencies": s.rotary_rules(frequencies=s.frequencies(step=1.0))},
        {"frequencies": s.rotary_rules(frequencies=s.frequencies(step=4.0))},
        {"frequencies": s.rotary_rules(frequencies=s.frequencies_to_the_end)},
        *(
            {
                "frequencies": s.rotary_rules(frequencies=s.frequencies_of_columns(step)),
                "turn": s.rotary_rules(turn=s.turn_columns),
            }
            for step in (1.0, 2.0)
        ),
    ),
    *variants("rope.exponent_sign", {"frequencies": s.rotary_rules(frequencies=s.frequencies(step=-2.0))}),
    *variants(
        "rope.frequencies_from_one",
        {"frequencies": s.rotary_rules(frequencies=s.frequencies(first=2.0))},
        {"frequencies": s.rotary_rules(frequencies=s.frequencies(first=1.0))},
    ),
    *variants(
        "rope.one_frequency",
        {"frequencies": s.rotary_rules(frequencies=s.frequencies(step=0.0))},
        {"frequencies": s.rotary_rules(frequencies=s.frequencies(first=2.0, step=0.0))},
    ),
    *variants("rope.half_split", {"turn": s.rotary_rules(turn=s.turn_halves)}),
    *variants("rope.direction", {"unit": s.rotary_rules(unit=-1.0)}),
    *variants(
        "rope.overwritten",
        {"turn": s.rotary_rules(turn=s.turn_overwriting_first)},
        {"turn": s.rotary_rules(turn=s.turn_overwriting_second)},
    ),
    *variants(
        "rope.sign_lost",
        {"turn": s.rotary_rules(turn=s.turn_without_minus)},
        {"turn": s.rotary_rules(turn=s.turn_without_plus)},
    ),
    *variants(
        "rope.mixed_conventions",
        {"turn": s.rotary_rules(turn=s.turn_halves_with_doubled_angles)},
        {"turn": s.rotary_rules(turn=s.turn_neighbours_with_repeated_angles)},
    ),
    *variants("rope.head_axis", {"places": s.rotary_rules(places=s.places_of_heads)}),
)
