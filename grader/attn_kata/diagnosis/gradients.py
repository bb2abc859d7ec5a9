"""Compares an attempt's gradients with those of the mistakes that reproduce its values. If they differ, its graph is cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Pipeline, State, Variant
from attn_kata.diagnosis.probing import SEED, ProbeCall, ProbeResults, target
from attn_kata.diagnosis.search import EQUAL, RIVAL, Answer, distance
from attn_kata.properties.failures import AttemptDied, PropertyFailed
from attn_kata.properties.handle import Handle
from attn_kata.properties.results import Result


def differ(pipeline: Pipeline, asked: ProbeResults, attempt: Handle, ids: frozenset[str]) -> bool:
    """Whether the attempt's gradients on one probe differ from those of every variant of the mistakes `ids`.

    False if this cannot be decided: the attempt raises, or gradients are not finite.
    """
    for put, answer in zip(asked.calls, asked.answers, strict=True):
        if pipeline.ask is not None or not isinstance(answer.output, Tensor):
            continue  # several calls, or a result in parts: the hidden tests check the gradients where the values are right
        if answer.output.dtype != torch.float64 or not bool(answer.output.isfinite().all()):
            continue
        torch.default_generator.manual_seed(SEED)
        cotangent = torch.randn(answer.output.shape, dtype=torch.float64)
        rivals = [
            given for chosen in _ways(pipeline, ids) if (given := _gradients(pipeline, put, chosen, cotangent, answer))
        ]
        if not rivals:
            continue
        try:
            module = target(pipeline, attempt, put, torch.float64)
            result = module.run(*put.probe.args, cotangent=cotangent, training=False if pipeline.module else None)
        except (PropertyFailed, AttemptDied):
            return False
        return not any(_alike(result, one) for one in rivals)
    return False


def _ways(pipeline: Pipeline, ids: frozenset[str]) -> Iterator[tuple[Variant, ...]]:
    """Every choice of one variant for each id."""
    by_id = [[variant for variant in pipeline.variants if variant.id == id] for id in sorted(ids)]
    return itertools.product(*by_id)


def _gradients(
    pipeline: Pipeline, put: ProbeCall, chosen: tuple[Variant, ...], cotangent: Tensor, answer: Answer
) -> list[Tensor] | None:
    """Gradients of the floating arguments, then of the parameters by name; None if the values are not the attempt's."""
    args = [_leaf(value) for value in put.probe.args]
    weights = {name: _leaf(value) for name, value in put.weights.items()}
    leaves = [value for value in args if isinstance(value, Tensor) and value.requires_grad]
    leaves += [weights[name] for name in sorted(weights)]
    try:
        state: State = pipeline.begin(weights, put.probe.build, *args) if pipeline.module else pipeline.begin(*args)
        result = pipeline.result(state, chosen)
        if distance(answer, result) > EQUAL or not result.out.requires_grad:
            return None
        found = torch.autograd.grad((result.out * cotangent).sum(), leaves, allow_unused=True)
    except (RuntimeError, IndexError, ValueError):
        return None
    given = [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found, strict=True)]
    return given if all(bool(one.isfinite().all()) for one in given) else None


def _leaf(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().clone().requires_grad_()
    return value


def _alike(result: Result, right: list[Tensor]) -> bool:
    names = sorted(result.parameter_gradients)
    got = [*result.input_gradients, *(result.parameter_gradients[name] for name in names)]
    if len(got) != len(right):
        return True  # other parameters than the contract's: nothing can be told
    return all(
        bool(((0.0 if mine is None else mine) - wanted).abs().max() < RIVAL) if wanted.numel() else True
        for mine, wanted in zip(got, right, strict=True)
    )
