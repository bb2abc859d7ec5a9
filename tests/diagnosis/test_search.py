"""The search names what reproduces an attempt's answers, and nothing else."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from attn_kata import catalog
from attn_kata.authoring import mutants
from attn_kata.diagnosis import outcomes, search
from attn_kata.diagnosis.outcomes import Outcomes, outcome, tensors
from attn_kata.diagnosis.pipeline import Output, Pipeline, State, Variant, load
from attn_kata.diagnosis.search import Answer, distance, explain
from attn_kata.grading.local import local_handle

PIPELINES = [(kata, pipeline) for kata in catalog.katas() for pipeline in load(kata.folder).PIPELINES]
IDS = [f"{kata.slug}-{pipeline.entry}" for kata, pipeline in PIPELINES]


def begun_for(kata: catalog.Kata, pipeline: Pipeline) -> tuple[list[State], list[Output]]:
    """The pipeline's first states on its probes, and what the reference answers there."""
    torch.manual_seed(1)
    made = list(mutants.reference_outputs(pipeline, local_handle(kata.solution, kata.returns)))
    return [state for state, _ in made], [output for _, output in made]


def doubled(output: Output) -> Output:
    """In float64, every tensor of it."""
    return output.double() if isinstance(output, torch.Tensor) else tuple(part.double() for part in tensors(output))


def answered(pipeline: Pipeline, begun: list[State], chosen: tuple[Variant, ...]) -> list[Answer]:
    """What an attempt with exactly these mistakes would answer."""
    results = [outcome(pipeline, state, chosen) for state in begun]
    return [
        Answer(output=None, raised=result) if isinstance(result, str) else Answer(output=doubled(result.out))
        for result in results
    ]


def steered(begun: list[State], answers: list[Answer]) -> tuple[list[State], list[Answer]]:
    """Both with a probe first that was answered with a tensor, as the diagnosis orders them."""
    order = sorted(range(len(answers)), key=lambda place: answers[place].output is None)
    return [begun[place] for place in order], [answers[place] for place in order]


@pytest.mark.parametrize(("kata", "pipeline"), PIPELINES, ids=IDS)
def test_the_pipeline_without_a_mistake_is_the_reference(kata: catalog.Kata, pipeline: Pipeline) -> None:
    begun, right = begun_for(kata, pipeline)

    for state, answer in zip(begun, right, strict=True):
        for mine, expected in zip(tensors(pipeline.result(state).out), tensors(answer), strict=True):
            assert torch.allclose(mine.double(), expected.double(), atol=1e-9, equal_nan=False)


@pytest.mark.parametrize(("kata", "pipeline"), PIPELINES, ids=IDS)
def test_a_right_attempt_is_given_no_mistake(kata: catalog.Kata, pipeline: Pipeline) -> None:
    begun, right = begun_for(kata, pipeline)
    answers = [Answer(output=doubled(answer)) for answer in right]

    assert explain(pipeline, begun, answers) == [frozenset()]


# Mistakes that one entry point of a kata cannot tell apart, at least in one of their variants, and another can. A turn that is
# the same for all tokens of a head leaves every score as it is; cosine and sine exchanged is a turn backwards from a quarter; a
# forward pass without a mask has a backward pass without it.
ALIKE = {
    "rope_attention": [
        {"rope.head_axis", "rope.missing"},
        {"rope.direction", "rope.exchanged"},
        {"rope.half_split", "rope.mixed_conventions"},
    ],
    "attention_backward": [{"backward.mask_ignored", "mask.lost"}],
    # Sigmoids that are masked, and then divided by their sum, are both.
    "causal_attention": [{"softmax.not_exp", "softmax.sigmoid"}],
    "padded_attention": [{"softmax.not_exp", "softmax.sigmoid"}],
}


@pytest.mark.parametrize(("kata", "pipeline"), PIPELINES, ids=IDS)
def test_every_mistake_is_named_and_told_apart_from_every_other(kata: catalog.Kata, pipeline: Pipeline) -> None:
    begun, _ = begun_for(kata, pipeline)
    for variant in pipeline.variants:
        if not variant.shows_in_values:
            continue
        answers = answered(pipeline, begun, (variant,))
        if all(answer.output is None for answer in answers):
            continue  # it raises wherever it is asked: named by a symptom
        states, ordered = steered(begun, answers)
        alike = next((ids for ids in ALIKE.get(pipeline.entry, ()) if variant.id in ids), {variant.id})

        told_apart, alike_too = [frozenset({variant.id})], [frozenset({id}) for id in sorted(alike)]
        assert explain(pipeline, states, ordered) in (told_apart, alike_too)


def nudged(output: Output, by: float) -> Output:
    """The output with noise of this size in every part."""
    parts = tuple(part.double() + by * torch.randn(part.shape).double() for part in tensors(output))
    return parts[0] if isinstance(output, torch.Tensor) else parts


MASKS = ("causal_mask", "combine_masks", "padding_mask", "sliding_window_mask")  # a boolean is equal or it is not
NUMBERS = [(kata, pipeline) for kata, pipeline in PIPELINES if pipeline.entry not in MASKS]


@pytest.mark.parametrize(("kata", "pipeline"), NUMBERS, ids=[f"{kata.slug}-{one.entry}" for kata, one in NUMBERS])
def test_an_answer_near_a_mistake_but_not_equal_to_it_is_blamed_on_nothing(
    kata: catalog.Kata, pipeline: Pipeline
) -> None:
    begun, right = begun_for(kata, pipeline)
    whole = (kata, pipeline) in NUMBERS[
        ::4
    ]  # of the others each mistake alone: pairs and triples are thousands of sets
    for nudge in (1e-4, 0.05):
        answers = [Answer(output=nudged(answer, nudge)) for answer in right]

        assert explain(pipeline, begun, answers, most=search.MOST if whole else 1) == []


def some_pairs(kata: catalog.Kata, pipeline: Pipeline, *, count: int) -> list[tuple[Variant, ...]]:
    """Pairs of mistakes, drawn from a seed, that compute something else than the reference and than every single mistake."""
    pairs = list(mutants.choices(pipeline, pairs=True))
    known = mutants.Known(pipeline, local_handle(kata.solution, kata.returns))
    drawn = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(2)).tolist()
    return list(itertools.islice(filter(known.lacks, (pairs[place] for place in drawn)), count))


def test_pairs_are_found_on_mha() -> None:
    kata = catalog.find("mha")
    (pipeline,) = load(kata.folder).PIPELINES
    begun, _ = begun_for(kata, pipeline)
    wrong = []
    for chosen in some_pairs(kata, pipeline, count=24):
        states, answers = steered(begun, answered(pipeline, begun, chosen))
        if all(answer.output is None for answer in answers):
            continue
        found = explain(pipeline, states, answers)
        if frozenset(variant.id for variant in chosen) not in found:
            wrong.append((sorted(variant.id for variant in chosen), found))

    assert wrong == []


@pytest.mark.parametrize("slug", ["causal_mask", "mha"])
def test_what_sets_share_changes_no_outcome(slug: str) -> None:
    """Stages before the first mistake, and between two, are computed once for all sets that begin alike."""
    kata = catalog.find(slug)
    pipeline = load(kata.folder).PIPELINES[0]
    begun, _ = begun_for(kata, pipeline)
    every = list(outcomes.outcomes(pipeline, begun[0], 2, None))
    pairs = [
        chosen
        for chosen in itertools.combinations([one for one in pipeline.variants if one.shows_in_values], 2)
        if not set(chosen[0].stages) & set(chosen[1].stages)
    ]
    apart = [
        each.chosen
        for each in every[:: 1 if slug == "causal_mask" else 7]
        if distance(
            Answer(output=None, raised=each.result) if isinstance(each.result, str) else Answer(output=each.result.out),
            outcome(pipeline, begun[0], each.chosen),
        )
    ]

    assert len(every) == len(pairs)
    assert apart == []


def test_the_order_of_the_probes_does_not_matter() -> None:
    kata = catalog.find("mha")
    (pipeline,) = load(kata.folder).PIPELINES
    begun, _ = begun_for(kata, pipeline)
    for chosen in some_pairs(kata, pipeline, count=12):
        answers = answered(pipeline, begun, chosen)
        if any(answer.output is not None for answer in answers):
            found = explain(pipeline, begun, answers)
            turned = explain(pipeline, begun[::-1], answers[::-1])

            assert found == turned


def test_a_mistake_that_shows_beside_another_only_is_made_where_it_is_known_of() -> None:
    kata = catalog.find("mha")
    (pipeline,) = load(kata.folder).PIPELINES
    begun, right = begun_for(kata, pipeline)
    wrong = next(variant for variant in pipeline.variants if variant.id == "softmax.query_axis")
    renormalising = pipeline.assuming("dropout.renormalised")
    answers = answered(renormalising, begun, (wrong,))

    assert torch.allclose(renormalising.result(begun[1]).out, right[1])
    assert explain(pipeline, begun, answers) == []
    assert explain(renormalising, begun, answers) == [frozenset({"softmax.query_axis"})]


def test_what_is_made_beside_must_be_a_stage() -> None:
    kata = catalog.find("mha")
    (pipeline,) = load(kata.folder).PIPELINES

    with pytest.raises(ValueError, match=r"dropout.never replaces \['thinking'\]"):
        replace(pipeline, beside={"dropout.never": {"thinking": pipeline.stages["mix"]}})


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many sets each step of a search has tried. A search adds to it."""
    counts: list[int] = []

    def counted(*asked: Any) -> Outcomes:
        found = outcomes.outcomes(*asked)
        counts.append(len(found))
        return found

    monkeypatch.setattr(search, "outcomes", counted)
    return counts


def test_the_search_counts_what_it_tries_and_looks_at_no_clock(
    tried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kata = catalog.find("mha")
    (pipeline,) = load(kata.folder).PIPELINES
    begun, right = begun_for(kata, pipeline)
    answers = [Answer(output=torch.randn(answer.shape).double()) for answer in right]
    monkeypatch.setattr(search, "TRIALS", 100_000)  # here, triples may be tried whatever the pairs are

    assert explain(pipeline, begun, answers) == []
    counts = [sum(tried)]
    for most in (1000, 900):
        tried.clear()
        monkeypatch.setattr(search, "TRIPLES", most)
        explain(pipeline, begun, answers)
        counts.append(sum(tried))

    assert counts[0] > counts[1] == counts[2] + 100


def test_which_mistakes_are_likely_is_asked_only_where_not_all_can_be_tried() -> None:
    kata = catalog.find("sdpa")
    (pipeline,) = load(kata.folder).PIPELINES
    begun, right = begun_for(kata, pipeline)
    missing = next(variant for variant in pipeline.variants if variant.id == "scale.missing")
    asked: list[str] = []

    def likely(id: str) -> bool:
        asked.append(id)
        return True

    assert explain(pipeline, begun, answered(pipeline, begun, (missing,)), likely=likely) == [frozenset({missing.id})]
    assert asked == []
    unknown = [Answer(output=nudged(answer, 1.0)) for answer in right]
    assert explain(pipeline, begun, unknown, likely=likely) == []
    assert set(asked) == {variant.id for variant in pipeline.variants}


@pytest.mark.parametrize("slug", ["mha", "causal_mask", "flash_attention"])
def test_what_is_kept_of_an_earlier_search_changes_no_later_one(slug: str) -> None:
    """The same answers in a pipeline that knows nothing yet, and in one that has searched for others."""
    kata = catalog.find(slug)
    for pipeline in load(kata.folder).PIPELINES:
        begun, right = begun_for(kata, pipeline)
        shown = [variant for variant in pipeline.variants if variant.shows_in_values][::9]
        asked = [answered(pipeline, begun, (variant,)) for variant in shown]
        asked += [[Answer(output=doubled(answer)) for answer in right]]
        asked = [answers for answers in asked if any(answer.output is not None for answer in answers)]
        alone = [explain(replace(pipeline), begun, answers, most=1) for answers in asked]

        assert [explain(pipeline, begun, answers, most=1) for answers in asked] == alone


def test_only_what_is_plainly_apart_is_ruled_out_before_it_is_compared() -> None:
    for kata, pipeline in PIPELINES[::3]:
        begun, right = begun_for(kata, pipeline)
        for answer in (right[0], answered(pipeline, begun, pipeline.variants[:1])[0].output):
            got = next(iter(tensors(answer)), None)
            if got is None:
                continue
            of_one = outcomes.outcomes(pipeline, begun[0], 1, None)
            near = {id(one) for one in of_one.near(got, search.RIVAL)}
            for one in of_one:
                if search.distance(Answer(output=answer), one.result) < search.RIVAL:
                    assert id(one) in near, one.chosen


def test_other_right_ways_are_tried_only_where_they_can_tell(tried: list[int]) -> None:
    kata = catalog.find("flash_attention")
    (pipeline,) = load(kata.folder).PIPELINES
    begun, right = begun_for(kata, pipeline)
    answers = [Answer(output=nudged(answer, 1.0)) for answer in right]
    counts = []
    for one in (pipeline, replace(pipeline, ways=())):
        tried.clear()
        assert explain(one, begun, answers, most=2) == []
        counts.append(sum(tried))

    assert len(pipeline.ways) == 3
    assert counts[0] < 2.5 * counts[1]  # four times without a look at what the ways change


def test_two_mistakes_are_named_in_a_right_way_that_changes_what_one_of_them_does() -> None:
    kata = catalog.find("flash_attention")
    (pipeline,) = load(kata.folder).PIPELINES
    begun, _ = begun_for(kata, pipeline)
    ids = ("scale.missing", "mask.zero_fill")  # a tile that is skipped is not filled with 0
    chosen = tuple(next(variant for variant in pipeline.variants if variant.id == id) for id in ids)
    skipping = pipeline.in_ways[0]

    states, answers = steered(begun, answered(skipping, begun, chosen))

    assert explain(pipeline, states, answers) == [frozenset(ids)]
