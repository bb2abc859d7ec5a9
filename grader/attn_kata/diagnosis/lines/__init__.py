"""The line of a mistake, if the attempt's syntax tree shows it without doubt. No code of the attempt runs.

Each family has finders that search the live part of the source (`program`) for the only possible place of the mistake.
If several places remain, or if the only one is clearly right, there is no line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial

from attn_kata.diagnosis import own_exceptions
from attn_kata.diagnosis.lines import (
    attributes,
    axes,
    dropout,
    groups,
    heads,
    masks,
    modules,
    positions,
    projections,
    scores,
    tensors,
    triangles,
    without_effect,
)
from attn_kata.diagnosis.lines.program import Program

Finder = Callable[[Program], int | None]


def find(id: str, source: bytes, *, raised_line: int | None = None) -> int | None:
    """The 1-based line of the mistake `id` in `source`, or None.

    `raised_line` is where the attempt raised; it is the line of mistakes that raise where they are made.
    """
    lines = source.count(b"\n") + 1
    if id in WHERE_RAISED and raised_line is not None:
        return raised_line if 1 <= raised_line <= lines else None
    finder = FINDERS.get(id)
    if finder is None:
        return None
    try:
        program = _program(source)
        return finder(program) if program is not None else None
    except (RecursionError, MemoryError):  # nested deeper than people write
        return None


def multiplies_mask_by_infinity(source: bytes) -> bool:
    """Whether the live part of `source` multiplies a mask by infinity."""
    return _any(masks.times_infinity, source)


def softmax_without_dim(source: bytes) -> bool:
    """Whether every live softmax of `source` leaves its dimension to torch."""
    return _any(scores.without_dim, source)


def softmaxes_without_dim(source: bytes, *, every: bool = False) -> list[int]:
    """The lines of the live softmaxes of `source`, where all of them leave their dimension to torch."""
    return _lines_of(scores.without_dim, source, every=every)


def mask_adds_almost_nothing(source: bytes) -> bool:
    """Whether the live part of `source` adds a mask times a tiny number to the scores."""
    return _any(masks.tiny_terms, source)


def fill_with_almost_nothing(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` gives hidden keys a tiny number, as -1e-9, in place of a large one."""
    return _lines_of(masks.tiny_scores, source, every=every)


def have_no_effect(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` makes a new tensor that nothing takes."""
    return _lines_of(without_effect.dropped, source, every=every)


def compute_for_nothing(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` calls a linear layer, and never reads the result."""
    return _lines_of(without_effect.layers_for_nothing, source, every=every)


def softmax_for_nothing(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where a class of `source` computes its only softmax, and never reads the result."""
    return _lines_of(without_effect.softmaxes_for_nothing, source, every=every)


def make_a_softmax_of_scores(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` gives nn.Softmax scores and a dimension."""
    return _lines_of(scores.made_of_scores, source, every=every)


def score_without_tanh(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` scores a query beside a key by a linear layer, with no activation."""
    return _lines_of(tensors.concat_scores_without_tanh, source, every=every)


def drop_masks(source: bytes) -> list[int]:
    """Those of them where a mask is filled in and the result is dropped."""
    return _lines_of(without_effect.dropped_masks, source)


def drop_in_eval_too(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` calls torch's attention with a dropout that knows no mode."""
    return _lines_of(dropout.ready_made_without_a_mode, source, every=every)


def drop_without_a_mode(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` calls torch's functional dropout, and nothing tells it the mode."""
    return _lines_of(dropout.functional_without_a_mode, source, every=every)


def make_a_dropout_when_called(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` makes a dropout in a call and applies it: it is always in train() mode."""
    return _lines_of(dropout.made_when_called, source, every=every)


def make_a_linear_layer_when_called(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` makes a linear layer in every call."""
    return _lines_of(modules.linear_made_when_called, source, every=every)


def change_softmax_in_place(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` changes the result of a softmax in place."""
    return _lines_of(tensors.softmax_changed_in_place, source, every=every)


def put_heads_before_time(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` views what a linear layer gives as (B, heads, T, size)."""
    return _lines_of(heads.splits_of_linear, source, every=every)


def scale_by_heads(source: bytes, *, every: bool = False) -> list[int]:
    """The lines that make a scale of the number of heads."""
    return _lines_of(scores.by_heads, source, every=every)


def scale_by_width(source: bytes, *, every: bool = False) -> list[int]:
    """The lines that make a scale of the width of all heads together, in a class that knows the size of a head."""
    return _lines_of(scores.by_width, source, every=every)


def read_what_nothing_sets(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where a class of `source` reads an attribute of its own that nothing in `source` sets."""
    return _lines_of(attributes.never_set, source, every=every)


def read_names(source: bytes, names: Collection[str]) -> list[int]:
    """The lines where a function of `source` reads one of these names, and does not set it itself."""
    return _lines_of(lambda program: attributes.names_read(program, names), source, every=True)


def hold_one_layer_several_times(source: bytes, *, every: bool = False) -> list[int]:
    """The lines where the live part of `source` puts one and the same layer into a list several times."""
    return _lines_of(modules.holds_one_several_times, source, every=every)


def return_nothing(source: bytes) -> list[int]:
    """The lines where each `forward` of `source` ends that gives no value."""
    return _lines_of(without_effect.silent, source)


def masks_queries(source: bytes) -> bool:
    """Whether the live part of `source` lays flags of keys on the queries of its scores."""
    return _any(axes.masked_queries, source)


def softmax_over_queries(source: bytes) -> bool:
    """Whether a live softmax of `source` is plainly along the queries."""
    return _any(axes.softmax_over_queries, source)


def fill_numbers(source: bytes) -> list[float]:
    """The numbers that the live part of `source` fills or adds where a mask is, if they are too weak or positive."""
    try:
        program = _program(source)
        return masks.weak_numbers(program) if program is not None else []
    except (RecursionError, MemoryError):
        return []


def activations(source: bytes) -> list[str]:
    """The names of the activations that the live part of `source` mentions, each once: "relu", "leakyrelu"."""
    try:
        program = _program(source)
        return sorted(set(tensors.activations(program).values())) if program is not None else []
    except (RecursionError, MemoryError):
        return []


def fills_with_plus(source: bytes) -> bool:
    """Whether the live part of `source` gives hidden keys a large positive number."""
    return _any(masks.positive_fills, source)


def raises_kept_scores(source: bytes) -> bool:
    """Whether the live part of `source` adds a large positive number to the scores of kept keys."""
    return _any(masks.raised_scores, source)


def inverts_integers(source: bytes) -> bool:
    """Whether the live part of `source` applies ~ to a mask that it has made a tensor of integers."""
    return _any(masks.inverted_integers, source)


def softmax_along_fourth(source: bytes) -> bool:
    """Whether the live part of `source` has a softmax along dimension 3, counted from the first."""
    return _any(scores.along_fourth, source)


def drops_twice(source: bytes) -> bool:
    """Whether the live part of `source` applies dropout in two places or more."""
    return _any(dropout.further, source)


def drops_by_a_number(source: bytes) -> bool:
    """Whether the live part of `source` has dropout whose probability is a number in the code."""
    return _any(dropout.by_a_number, source)


def forgets_what_it_drops(source: bytes) -> bool:
    """Whether the live part of `source` calls something that drops, and nobody uses the result."""
    return _any(dropout.forgotten, source)


def makes_layers_when_called(source: bytes) -> bool:
    """Whether `forward`, or a function that it calls, makes a layer."""
    return _any(modules.made_when_called, source)


def writes_softmax(source: bytes) -> bool:
    """Whether the live part of `source` has an exp, as a softmax that is written out has."""
    return _any(scores.exponentials, source)


def multiplies_by_itself(source: bytes) -> bool:
    """Whether the live part of `source` has a product of queries with queries, or of keys with keys."""
    return _any(projections.of_one_tensor, source)


def masks_twice(source: bytes) -> bool:
    """Whether the live part of `source` applies a mask in more than one place."""
    return _any(masks.second_applications, source)


def squeezes_all(source: bytes) -> bool:
    """Whether the live part of `source` squeezes without a dimension, in one place or more."""
    return _any(tensors.squeezes, source)


def takes_heads_first(source: bytes) -> int | None:
    """The line of the one constructor that takes the number of heads before all else."""
    return find("arguments.order", source)


def leaves_the_graph(source: bytes) -> bool:
    """Whether the live part of `source` leaves autograd's graph where a gradient should pass."""
    return _any(tensors.cuts, source)


def _any(nodes: Callable[[Program], Sequence[ast.AST]], source: bytes) -> bool:
    try:
        program = _program(source)
        return program is not None and bool(nodes(program))
    except (RecursionError, MemoryError):
        return False


def _lines_of(nodes: Callable[[Program], Sequence[ast.AST]], source: bytes, *, every: bool = False) -> list[int]:
    """The lines of these nodes; with `every`, also in definitions that no entry point of a kata uses."""
    try:
        program = _program(source, every=every)
        found = [] if program is None else [getattr(node, "lineno", 0) for node in nodes(program)]
        return sorted(set(found))
    except (RecursionError, MemoryError):
        return []


def _first_of(nodes: Callable[[Program], Sequence[ast.AST]]) -> Finder:
    return lambda program: next((getattr(node, "lineno", None) for node in nodes(program)), None)


@lru_cache(maxsize=4)
@lru_cache(maxsize=2)  # a grading looks at one source in many ways
def _program(source: bytes, *, every: bool = False) -> Program | None:
    try:
        return Program(source, every=every)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# If one of these mistakes raises, it raises at its own line.
WHERE_RAISED = frozenset(
    {
        "context.query_length",
        "layout.view_of_strided",
        "layout.T_of_batch",
        "mask.not_boolean",
        "mask.bool_arithmetic",
        "mask.as_condition",
        "mask.none",
        "mask.square_only",
        "layout.fixed_rank",
        "numerics.large_fill",
        *own_exceptions.IDS,
    }
)


FINDERS: dict[str, Finder] = {
    "scale.embed_dim": partial(scores.wrong_size, id="scale.embed_dim"),
    "scale.value_dim": partial(scores.wrong_size, id="scale.value_dim"),
    "scale.key_length": partial(scores.wrong_size, id="scale.key_length"),
    "scale.heads": partial(scores.wrong_size, id="scale.heads"),
    "scale.missing": scores.unscaled,
    "scale.no_sqrt": scores.no_sqrt,
    "scale.inverted": scores.inverted,
    "scale.floor_division": scores.floor_division,
    "scale.after_softmax": scores.after_softmax,
    "scale.unwanted": scores.unwanted,
    "score.same_tensor": projections.same_tensor,
    "score.reshaped": tensors.called("reshape", "view"),
    "softmax.query_axis": scores.wrong_dim,
    "softmax.head_axis": scores.wrong_dim,
    "softmax.no_dim": scores.wrong_dim,
    "softmax.flattened": scores.flattened,
    "softmax.size_one": scores.flattened,
    "softmax.sigmoid": scores.sigmoid,
    "softmax.negated": scores.negated,
    "softmax.twice": scores.twice,
    "softmax.log": scores.log,
    "softmax.dim_ignored": scores.dim_ignored,
    "softmax.whole_tensor": scores.whole_tensor,
    "softmax.keepdim": scores.keepdim,
    "mask.lost": masks.lost,
    "mask.inverted": masks.inverted,
    "mask.zero_fill": masks.zero_fill,
    "mask.tiny": masks.tiny,
    "mask.zero_times_inf": masks.zero_times_inf,
    "mask.weak_fill": masks.weak_fill,
    "mask.fill_sign": masks.fill_sign,
    "mask.fixed_size": triangles.fixed_size,
    "mask.kept": triangles.kept,
    "mask.raised": masks.raised,
    "mask.integer_not": masks.integer_not,
    "mask.after_softmax": masks.after_softmax,
    "mask.query_axis": axes.query_axis,
    "mask.broadcast": masks.only_application,
    "mask.added": masks.added,
    "mask.folded_order": tensors.called("repeat", "repeat_interleave", "tile"),
    "mask.right_padding_only": triangles.lengths,
    "mask.either": masks.either,
    "mask.shifted": triangles.triangle,
    "mask.top_left": triangles.top_left,
    "mask.offset_sign": triangles.triangle,
    "mask.upper_triangle": triangles.triangle,
    "mask.causal": triangles.triangle,
    "mask.padding_off_by_one": triangles.lengths,
    "split.no_transpose": heads.split_no_transpose,
    "split.interleaved": heads.split_interleaved,
    "merge.head_order": tensors.called("reversed", "flip", "roll"),
    "split.head_order": tensors.called("reversed", "flip", "roll"),
    "merge.no_transpose": heads.merge_no_transpose,
    "merge.interleaved": heads.merge_interleaved,
    "project.key_for_value": partial(projections.wrong_layer, target="v", layer="k"),
    "project.value_for_key": partial(projections.wrong_layer, target="k", layer="v"),
    "project.query_for_key": partial(projections.wrong_layer, target="k", layer="q"),
    "project.query_for_value": partial(projections.wrong_layer, target="v", layer="q"),
    "project.value_for_query": partial(projections.wrong_layer, target="q", layer="v"),
    "project.chained": projections.chained,
    "project.swapped": projections.swapped,
    "project.activation": tensors.activation,
    "score.activation": tensors.activation,
    "output.activation": tensors.activation,
    "project.chunk_order": projections.chunk_order,
    "project.interleaved": projections.fused_interleaved,
    "output.missing": projections.output_missing,
    "mix.keys": projections.mix_keys,
    "context.swapped": projections.context_swapped,
    "context.ignored": projections.context_ignored,
    "dropout.before_softmax": dropout.applied,
    "dropout.on_output": dropout.applied,
    "dropout.twice": dropout.last,
    "dropout.on_values": dropout.applied,
    "dropout.rows": dropout.applied,
    "dropout.drawn_once": dropout.drawn_once,
    "dropout.not_rescaled": dropout.applied,
    "dropout.keep_probability": dropout.applied,
    "dropout.shared": dropout.applied,
    "dropout.always": dropout.always,
    "dropout.never": dropout.never,
    "dropout.renormalised": dropout.renormalised,
    "layout.view_of_strided": tensors.called("view"),
    "layout.batch_as_time": tensors.batch_as_time,
    "layout.T_of_batch": tensors.transposed_by_T,
    "layout.squeeze": tensors.squeeze,
    "numerics.no_max": scores.no_max,
    "numerics.global_max": scores.global_max,
    "numerics.clamped": scores.clamped,
    "numerics.forced_float32": tensors.forced_float32,
    "numerics.default_dtype": tensors.default_dtype,
    "numerics.large_fill": masks.large_fill,
    "numerics.small_fill": masks.small_fill,
    "device.default": tensors.default_device,
    "inputs.modified": tensors.modified,
    "gradient.detached": tensors.detached,
    "gradient.in_place": tensors.in_place,
    "additive.tanh_separately": tensors.called("tanh"),
    "additive.no_tanh": scores.summed,
    "pooling.counts_padding": tensors.called("mean", "avg_pool1d", "adaptive_avg_pool1d"),
    "pooling.divides_by_length": modules.divides_by_length,
    "pooling.one_token": modules.one_token,
    "embed.scaled": modules.embed_scaled,
    "classifier.softmax": modules.classifier_softmax,
    "module.rebuilt": modules.rebuilt,
    "module.unregistered": modules.unregistered,
    "module.repeated": modules.repeated,
    "arguments.unchecked": modules.unchecked,
    "arguments.order": modules.heads_first,
    "dropout.fixed": dropout.fixed,
    "group.repeated": groups.repeated,
    "group.mismatched": groups.repeated,
    "cache.prepended": groups.joined,
    "cache.wrong_axis": groups.joined,
    "paged.off_by_one": groups.compared_with_length,
    "paged.each_page_cut": groups.cut_at_length,
    "paged.table_transposed": groups.reshaped_table,
    "python.unused_result": _first_of(without_effect.dropped),
    "python.no_return": _first_of(without_effect.silent),
    "rope.exponent": positions.only(positions.is_power_of_base),
    "rope.exponent_sign": positions.only(positions.is_power_of_base),
    "rope.frequencies_from_one": positions.only(positions.is_power_of_base),
    "rope.direction": positions.only(positions.is_made_of_turned),
    "rope.sign_lost": positions.only(positions.is_made_of_turned),
    "rope.concatenated": positions.only(positions.is_made_of_turned),
    "alibi.sign": positions.only(positions.is_bias_of_slopes),
    "alibi.scaled": positions.only(positions.is_bias_of_slopes),
    "window.off_by_one": positions.only(positions.is_limit_of_window),
    "window.sinks_ahead": positions.only(positions.is_join_of_sinks),
    "window.both_required": positions.only(positions.is_join_of_sinks),
}
