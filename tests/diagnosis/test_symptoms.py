"""What no value shows is named from what the hidden tests see, also where the values are wrong."""

from __future__ import annotations

import functools

import pytest

from attn_kata import catalog
from attn_kata.authoring import mutants
from attn_kata.diagnosis.pipeline import Pipeline, Variant, load
from attn_kata.diagnosis.symptoms import EVERYWHERE, Evidence, Symptom
from attn_kata.grading.hidden_tests import HiddenTest
from attn_kata.grading.local import Local, load_namespace
from attn_kata.grading.reference_cache import ReferenceCache
from attn_kata.grading.runner import Run
from attn_kata.properties.failures import Raised
from attn_kata.properties.handle import Handle

WITH_DROPOUT = ("mha", "attention_dropout")
ASKED = {
    "output_shape",
    "alike_in_train_and_eval",
    "zero_probability",
    "something_is_dropped",
    "what_is_dropped_is_missing",
}


@functools.cache
def known_of(slug: str) -> tuple[list[HiddenTest], ReferenceCache, tuple[Symptom, ...]]:
    """A kata's hidden tests, its reference and its symptoms: all mutants are asked the same, and collecting takes long."""
    kata = catalog.find(slug)
    answers = ReferenceCache(Local(load_namespace(kata.solution)))
    return mutants.hidden_tests(kata.folder), answers, tuple(load(kata.folder).SYMPTOMS)


def evidence_of(slug: str, attempt: Handle, *, only: set[str], code: str = "", seed: int = 3) -> Evidence:
    """What these core properties, and no others, show of an attempt whose values are wrong."""
    tests, answers, _ = known_of(slug)
    running = Run(attempt=attempt, reference=Handle(answers), seed=seed, begin=answers.begin)
    running.held.update(test.property.name for test in tests if test.property.name not in only)
    for test in tests:
        if test.property.name in only:
            running.take(test)
    return Evidence(
        failures=running.failures,
        held=frozenset(running.held & only),
        raised=(),
        source=code,
        code=code,
        values_right=False,
        unsteady=False,
        parameters={},
    )


def named(slug: str, evidence: Evidence) -> set[str]:
    """The ids of the symptoms that show."""
    return {one.id for one in (*known_of(slug)[2], *EVERYWHERE) if one.shows(evidence) is not None}


def beside(slug: str, id: str) -> list[tuple[Pipeline, Variant, Variant]]:
    """Every wrong way to compute the values that answers at all, with the mistake `id` beside it."""
    (pipeline,) = load(catalog.find(slug).folder).PIPELINES
    (hidden,) = (variant for variant in pipeline.variants if variant.id == id)
    return [(pipeline, variant, hidden) for variant in pipeline.variants if variant.shows_in_values]


HIDES = {  # what raises for lengths that differ, which is the first that shows, before dropout is looked at
    "attention_dropout": {"mix.keys", "mix.transposed", "mix.own_values", "project.swapped", "context.query_length"},
    "mha": {
        # The weights are read off through the projections, and a product of untransposed keys raises.
        "project.missing",
        "project.no_bias",
        "project.weight_transposed",
        "score.not_transposed",
        # The sum of a query's weights is read off the output, which is another sum here, or has x added.
        "mix.transposed",
        "mix.own_values",
        "output.residual",
    },
}


@pytest.mark.parametrize("id", ["dropout.never", "dropout.renormalised"])
@pytest.mark.parametrize("slug", WITH_DROPOUT)
def test_dropout_that_is_lost_or_made_up_for_is_named_beside_every_mistake_of_value(slug: str, id: str) -> None:
    other = {"dropout.never", "dropout.renormalised", "dropout.before_softmax"} - {id}
    unseen, blamed = [], []
    for pipeline, variant, hidden in beside(slug, id):
        attempt = mutants.handle(catalog.find(slug).solution, pipeline, (variant, hidden))
        found = named(slug, evidence_of(slug, attempt, only=ASKED))
        if id not in found and variant.id not in HIDES[slug]:
            unseen.append(variant.id)
        if found & other:
            blamed.append((variant.id, found & other))

    assert unseen == []
    assert blamed == []


@pytest.mark.parametrize("slug", WITH_DROPOUT)
def test_dropout_that_is_made_up_for_is_named_also_where_a_query_lost_all_its_weights(slug: str) -> None:
    """Their sum is 0 then, and what divides by the sum and a little gives 0, not 1. One seed in eight has such a query."""
    kata = catalog.find(slug)
    (pipeline,) = load(kata.folder).PIPELINES
    (renormalised,) = (variant for variant in pipeline.variants if variant.id == "dropout.renormalised")
    attempt = mutants.handle(kata.solution, pipeline, (renormalised,))
    for seed in range(20):
        assert "dropout.renormalised" in named(slug, evidence_of(slug, attempt, only=ASKED, seed=seed)), seed


@pytest.mark.parametrize("slug", WITH_DROPOUT)
def test_dropout_that_is_right_is_not_blamed_beside_any_mistake_of_value(slug: str) -> None:
    (pipeline,) = load(catalog.find(slug).folder).PIPELINES
    for variant in pipeline.variants:
        if variant.shows_in_values:
            attempt = mutants.handle(catalog.find(slug).solution, pipeline, (variant,))

            assert named(slug, evidence_of(slug, attempt, only=ASKED)) == set(), variant.id


class TestTransposedByT:
    """`.T` reverses every dimension: wrong for a batch, right for a mask of two dimensions."""

    RAISED = "The size of tensor a (5) must match the size of tensor b (2) at non-singleton dimension 1"

    def named(self, line: str) -> set[str]:
        """What shows of code whose only line raises this."""
        raised = Raised(types=("RuntimeError",), text=self.RAISED, frames=((1, "forward"),))
        evidence = Evidence(
            failures={},
            held=frozenset(),
            raised=(raised,),
            source=line,
            code=line,
            values_right=False,
            unsteady=False,
            parameters={},
        )
        return {one.id for one in EVERYWHERE if one.shows(evidence) is not None}

    @pytest.mark.parametrize("line", ["scores = q @ k.T", "return (q.matmul(keys.T) / d**0.5).softmax(-1)"])
    def test_of_a_batch_it_is_the_mistake(self, line: str) -> None:
        assert self.named(line) == {"layout.T_of_batch"}

    @pytest.mark.parametrize("line", ["scores = scores + mask.T", "s = s.masked_fill(~keep.T, -inf)", "s = s + tri.T"])
    def test_of_a_mask_it_may_be_right(self, line: str) -> None:
        assert self.named(line) == set()
