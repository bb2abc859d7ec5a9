"""What the hidden tests will ask, noted once."""

from __future__ import annotations

import functools
import itertools

import pytest

from attn_kata import catalog
from attn_kata.grading import hidden_tests, runner
from attn_kata.grading.hidden_tests import Case
from attn_kata.grading.local import Local, load_namespace, local_handle
from attn_kata.grading.prefetch import Prefetch
from attn_kata.properties.handle import Handle


@functools.cache
def noted(slug: str, other: str | None = None) -> dict[Case, list[bytes]]:
    """The questions of each case with the one after it; to the reference, or to a file among the kata's own."""
    kata = catalog.find(slug)
    prefetch = Prefetch(Local(load_namespace(kata.solution if other is None else kata.folder / other)))
    cases: list[Case] = []

    def begin(case: Case | None) -> None:
        prefetch.begin(case)
        if case is not None:
            cases.append(case)

    tests = hidden_tests.load(kata.folder / f"test_{slug}.py")
    runner.run(tests, Handle(prefetch), local_handle(kata.solution), seed=0, begin=begin)
    return {case: prefetch.requests_from(case) for case in cases}


@pytest.mark.parametrize(
    ("slug", "right"),
    [("mha", "helper_modules"), ("padding_mask", "loops_over_real_keys"), ("fused_qkv", "loop_over_samples")],
)
def test_another_right_attempt_is_asked_just_what_the_reference_is(slug, right):
    prefetched = noted(slug)

    assert len(prefetched) > 40
    assert prefetched == noted(slug, f"right/{right}.py")


def test_no_two_questions_are_alike_and_each_case_is_followed_by_the_next():
    prefetched = [*noted("mha").values()]
    for now, then in itertools.pairwise(prefetched):
        shared = len(set(now) & set(then))
        assert now[len(now) - shared :] == then[:shared]
        assert len(set(now)) == len(now)


def test_what_is_made_of_answers_is_not_prefetched():
    """A training's steps carry weights that the gradients before them led to; what comes before is prefetched."""
    prefetched = noted("attention_classifier")
    of_training = [questions for (_, name, _), questions in prefetched.items() if name == "learns"]

    assert len(of_training) == 1
    assert any(b"Build" in question for question in of_training[0])
    assert not any(b"labels" in question for question in of_training[0])  # a default is not sent


def test_a_case_that_was_not_noted_has_none():
    prefetch = Prefetch(Local(load_namespace(catalog.find("sdpa").solution)))

    assert prefetch.requests_from((0, "values", 0)) == prefetch.requests_from(None) == []
