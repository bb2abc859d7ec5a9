"""What a property says of an attempt it says with every seed: more seeds than one, over attempts that leant on theirs."""

from __future__ import annotations

from typing import Any

import pytest

from attn_kata import catalog
from attn_kata.authoring import mutants
from attn_kata.diagnosis.pipeline import load
from attn_kata.diagnosis.symptoms import Evidence
from attn_kata.grading.local import local_handle
from attn_kata.grading.runner import run
from attn_kata.properties.failures import PropertyFailed
from attn_kata.properties.handle import Handle

DRAWS = "something_is_dropped dropout_acts_on_weights dropout_rate dropout_is_independent dropout_is_fresh"
# A wrong attempt; the properties to ask, with what they need; those of them that fail.
SAID = (
    ("attention_dropout", "heads_folded_shared", f"{DRAWS} average", "dropout_is_independent"),
    ("attention_dropout", "shared_by_queries", f"{DRAWS} average", "dropout_is_independent"),
    ("attention_dropout", "whole_queries", f"{DRAWS} average", "dropout_is_independent"),
    ("attention_dropout", "drawn_once", f"{DRAWS} average", "dropout_is_fresh"),
    ("attention_dropout", "rate_a_little_high", f"{DRAWS} average", "dropout_rate average"),
    ("attention_dropout", "softmax_missing", "average", "average"),
    ("attention_dropout", "alpha_dropout", "average", ""),
    ("attention_dropout", "dropout_on_output", "average", ""),
    ("mha", "dropout_rows", DRAWS, "dropout_is_independent"),
    ("mha", "dropout_shared_by_queries", DRAWS, "dropout_is_independent"),
    ("mha", "dropout_drawn_once", DRAWS, "dropout_is_fresh"),
    ("mha", "scores_bounded", "values mask strong_scores", "strong_scores"),
    ("additive_attention", "products_score", "query_matters never_causal kept_keys_matter", ""),
    ("attention_classifier", "mask_inverted", "real_tokens_matter", "real_tokens_matter"),
    ("attention_classifier", "softmax_and_sum", "real_tokens_matter", ""),
    ("softmax", "global_max", "large_entries distant_slices", "distant_slices"),
    ("fused_qkv", "scale_missing_and_chunk_order", "every_token_counts", ""),
)
SEEDS = range(1, 13)


@pytest.mark.parametrize(("slug", "wrong", "asked", "failing"), SAID)
def test_the_same_properties_fail_with_every_seed(
    slug: str, wrong: str, asked: str, failing: str, specimen_handle: Any
) -> None:
    kata = catalog.find(slug)
    attempt = specimen_handle(slug, f"wrong/{wrong}")
    for seed in SEEDS:
        assert sorted(failures(kata, attempt, asked.split(), seed)) == sorted(failing.split()), seed


ONE_DRAW = """
import math

import torch

def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    return (weights * (torch.rand([weights.shape[axis] if axis in DRAWN else 1 for axis in range(4)]) >= p) / (1 - p)
            if training else weights) @ v
"""


@pytest.mark.parametrize("drawn", [(), (3,), (2,), (0, 2), (2, 3)])
def test_however_few_draws_serve_all_weights_they_are_named_shared(drawn: tuple[int, ...], tmp_path: Any) -> None:
    """By luck all of few draws keep, or all drop: in one call that looks like no dropout, or like nothing else."""
    kata = catalog.find("attention_dropout")
    (tmp_path / "one_draw.py").write_text(ONE_DRAW.replace("DRAWN", str(drawn)))
    attempt = local_handle(tmp_path / "one_draw.py")
    for seed in SEEDS:
        told = failures(kata, attempt, DRAWS.split(), seed)
        evidence = Evidence(
            failures=told,
            held=frozenset(),
            raised=(),
            source="",
            code="",
            values_right=True,
            unsteady=True,
            parameters={},
        )
        named = {one.id for one in load(kata.folder).SYMPTOMS if one.shows(evidence) is not None}

        assert (sorted(told), named) == (["dropout_is_independent"], {"dropout.shared"}), seed


def failures(kata: catalog.Kata, attempt: Handle, asked: list[str], seed: int) -> dict[str, PropertyFailed]:
    """Those of the properties that fail, of the ones asked for and what they need."""
    tests = mutants.hidden_tests(kata.folder)
    reference = local_handle(kata.solution)
    return run(tests, attempt, reference, seed=seed, only=tuple(asked))[1]
