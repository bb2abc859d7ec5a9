"""Code that hides later keys by itself, in words that say little of it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from attn_kata.diagnosis import probing
from attn_kata.diagnosis.outcomes import tensors
from attn_kata.properties.failures import PropertyFailed
from attn_kata.readings.searching.behaviour import Ranked, answers, fits, mistakes

if TYPE_CHECKING:
    from attn_kata.readings.searching.definition_search import DefinitionSearch

_MAY_HIDE = re.compile(r"tri[lu]|mask|inf\b|\de\d|caus|arange|cumsum|where\(")
_MAY_ORDER = re.compile(r"tri[lu]|caus|arange|cumsum|range\(")  # places of tokens are compared


def causal_after_all(one: DefinitionSearch, ranked: Ranked | None) -> Ranked | None:
    """The reading; as one that hides later keys, where that needs fewer mistakes, however the code writes it."""
    if ranked is None or not ranked.answers or not ranked.mistakes or ranked.reading.causal or "causal" in one.given:
        return ranked
    contract = one.contract
    if contract.causal or contract.is_block or contract.is_cross or contract.rotation or contract.mask == "keys":
        return ranked
    if contract.has_score:
        return ranked
    # It takes a second to look at all mistakes once more, and a result of a wrong shape says little of a triangle.
    if not fits(one.search.unmasked(ranked.reading)) and not _MAY_HIDE.search(one.code):
        return ranked
    if not _MAY_ORDER.search(one.code) and _earlier_tokens_see_the_last(one, ranked):
        return ranked
    causal = replace(ranked.reading, causal=True)
    asked = one.search.unmasked(causal)
    count = mistakes(asked, ranked.mistakes - 1) if answers(asked) else None
    return ranked if count is None else replace(ranked, reading=causal, mistakes=count)


def _earlier_tokens_see_the_last(one: DefinitionSearch, ranked: Ranked) -> bool:
    """Whether another last token changes every row of the result, on the first probe without a mask."""
    asked = one.search.unmasked(ranked.reading)
    attempt = one.search.handle(ranked.reading)
    for pipeline, found in asked:
        if attempt is None or not found.calls or found.answers[0].output is None or pipeline.ask is not None:
            return False
        call, before = found.calls[0], tensors(found.answers[0].output)[0]
        moved = replace(call.probe, args=tuple(map(_with_another_last_token, call.probe.args)))
        try:
            target = probing.target(pipeline, attempt, call, torch.float64)
            after = tensors(probing.output_of(pipeline, target, attempt, moved))[0]
        except (PropertyFailed, RuntimeError, IndexError, ValueError):
            return False
        if after.shape != before.shape or after.dim() < 2 or not bool((after - before).abs().amax(dim=-1).min() > 1e-9):
            return False
    return bool(asked)


def _with_another_last_token(given: object) -> object:
    """(..., T, E): the same with other numbers in the last of the T rows."""
    if not isinstance(given, torch.Tensor) or not given.is_floating_point() or given.dim() < 2:
        return given
    moved = given.clone()
    moved[..., -1, :] += torch.linspace(0.5, 1.5, given.shape[-1], dtype=given.dtype)
    return moved
