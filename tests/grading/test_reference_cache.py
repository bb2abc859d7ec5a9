"""The reference cache: the same answers, computed once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
import torch

from attn_kata import catalog
from attn_kata.grading import hidden_tests, runner
from attn_kata.grading.hidden_tests import HiddenTest
from attn_kata.grading.local import Local, load_namespace, local_handle
from attn_kata.grading.reference_cache import ReferenceCache
from attn_kata.properties.handle import Handle, number_for

MHA = catalog.find("mha")


class Counting(Local):
    """Counts what it has to compute."""

    computed = 0

    def ask(self, request: Any) -> Any:
        self.computed += 1
        return super().ask(request)


@pytest.fixture
def transport() -> Counting:
    return Counting(load_namespace(MHA.solution))


@pytest.fixture(scope="module")
def tests() -> list[HiddenTest]:
    return hidden_tests.load(MHA.folder / "test_mha.py")


def findings(tests: list[HiddenTest], attempt: Handle, reference: Handle, **named: Any) -> list[dict[str, Any]]:
    found = [asdict(finding) for finding in runner.run(tests, attempt, reference, **named)[0]]
    for finding in found:
        finding.pop("seconds")
    return found


def test_what_was_answered_once_is_not_computed_again(transport, tests):
    cache = ReferenceCache(transport)
    counts: list[int] = []
    for _ in range(2):
        found = findings(tests, local_handle(MHA.solution), Handle(cache), seed=0, begin=cache.begin)
        assert {finding["outcome"] for finding in found} == {"passed"}
        counts.append(transport.computed)

    assert counts[0] > 50
    assert counts[1] == counts[0]


def test_wrong_attempts_get_the_same_findings_with_the_cache_and_without_it(transport, tests, specimen_handle):
    cache = ReferenceCache(transport)
    findings(tests, local_handle(MHA.solution), Handle(cache), seed=0, begin=cache.begin)
    for name in ("mask_lost", "dropout_always", "detached_weights", "heads_not_checked"):
        wrong = f"wrong/{name}"
        plain = findings(tests, specimen_handle("mha", wrong), local_handle(MHA.solution), seed=0)
        told = findings(tests, specimen_handle("mha", wrong), Handle(cache), seed=0, begin=cache.begin)
        assert told == plain, name
        assert "failed" in {finding["outcome"] for finding in told}, name


def answer(reference: Handle, numbers: torch.Tensor) -> torch.Tensor:
    """What a module of ones says to these numbers."""
    module = reference.MultiHeadAttention(4, 2, 0.0)
    module.load({name: torch.ones(shape, dtype=torch.float64) for name, shape in module.parameters.items()})
    said: torch.Tensor = module(numbers)
    return said


def test_a_question_that_is_not_cached_is_computed_with_the_modules_of_the_case(transport):
    cache = ReferenceCache(transport)
    numbers = torch.randn(2, 3, 4, dtype=torch.float64)
    drawn = []

    def of_the_case(numbers: torch.Tensor) -> torch.Tensor:
        cache.begin((0, "case", 0))
        torch.default_generator.manual_seed(1)
        number_for(1)
        said = answer(Handle(cache), numbers)
        drawn.append(torch.rand(1).item())
        return said

    first = of_the_case(numbers)
    assert torch.equal(of_the_case(numbers), first)
    assert transport.computed == 3  # build, load, call
    assert torch.equal(of_the_case(2 * numbers), answer(local_handle(MHA.solution), 2 * numbers))
    assert transport.computed == 6
    assert len(set(drawn)) == 1, "what is drawn after it does not depend on the cache"


def test_outside_of_a_case_nothing_is_cached(transport):
    cache = ReferenceCache(transport)
    cache.begin(None)
    for asked in (3, 6):
        answer(Handle(cache), torch.ones(1, 2, 4, dtype=torch.float64))
        assert transport.computed == asked


def test_a_test_may_write_into_what_it_asked_with_and_what_it_was_told(transport):
    cache = ReferenceCache(transport)
    numbers = torch.randn(2, 3, 4, dtype=torch.float64)
    right = answer(local_handle(MHA.solution), numbers)
    for _ in range(3):
        cache.begin((0, "case", 0))
        number_for(1)
        asked = numbers.clone()
        said = answer(Handle(cache), asked)
        assert torch.equal(said, right)
        said.zero_()
        asked.zero_()
    assert transport.computed == 3


def test_what_a_module_draws_changes_nothing_that_is_drawn_for_the_tests(transport):
    cache = ReferenceCache(transport)

    def dropped(handle: Handle) -> tuple[torch.Tensor, float]:
        torch.default_generator.manual_seed(1)
        number_for(1)
        module = handle.MultiHeadAttention(4, 2, 0.5)
        return module.run(torch.ones(2, 3, 4), training=True).output, torch.rand(1).item()

    plain = dropped(local_handle(MHA.solution))
    for _ in range(2):
        cache.begin((0, "case", 0))
        told = dropped(Handle(cache))
        assert torch.equal(told[0], plain[0])
        assert told[1] == plain[1]
    assert transport.computed == 2  # build, call
