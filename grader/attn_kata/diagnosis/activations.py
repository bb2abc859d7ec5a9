"""Activations that the source names, where attention has none: after a projection, on the scores, on the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Stage, State, Variant, variants

# By name, as `lines.activations` gives it.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
    "silu": F.silu,
    "swish": F.silu,
    "elu": F.elu,
    "leakyrelu": F.leaky_relu,
    "softplus": F.softplus,
}

# After which stage an activation may be, and what it may be applied to there: the attributes of the state.
_PROJECTED = (("q",), ("k",), ("v",), ("q", "k"), ("q", "k", "v"))
_PLACES: tuple[tuple[str, str, tuple[tuple[str, ...], ...]], ...] = (
    ("project", "project.activation", _PROJECTED),
    ("score", "score.activation", (("scores",),)),
    ("scale", "score.activation", (("scores",),)),
    ("mask", "score.activation", (("scores",),)),
    ("mix", "output.activation", (("out",),)),
    ("output", "output.activation", (("out",),)),
)


def with_activations(pipeline: Pipeline, names: Sequence[str]) -> Pipeline:
    """The pipeline that may also apply the activations `names` where it has none.

    Each place is a stage of its own, so that another mistake may be made in the stage before it.
    """
    if not names or pipeline.activated or "score" not in pipeline.stages:  # without scores it is no attention
        return pipeline
    stages: dict[str, Stage] = {}
    made: list[Variant] = []
    for stage, right in pipeline.stages.items():
        stages[stage] = right
        for after, id, targets in _PLACES:
            if stage != after:
                continue
            place = f"{after}, activated"
            stages[place] = s.nothing
            for name in names:
                for attributes in targets:
                    made += variants(id, {place: _applied(ACTIVATIONS[name], attributes)})
    return replace(pipeline, stages=stages, variants=(*pipeline.variants, *made))


def _applied(activation: Callable[[Tensor], Tensor], attributes: tuple[str, ...]) -> Stage:
    """The stage that applies it to these attributes of the state, where the state has them."""

    def stage(state: State) -> None:
        for attribute in attributes:
            value = getattr(state, attribute, None)
            if value is not None:
                setattr(state, attribute, activation(value))

    return stage
