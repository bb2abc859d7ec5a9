"""The workbench grades attempts of our own one after the other, and none of them touches the next one's report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attn_kata import resources
from attn_kata.authoring.workbench import Workbench, briefly
from attn_kata.grading.grade import Loaded


@pytest.fixture(scope="module")
def workbench() -> Iterator[Workbench]:
    with Workbench() as running:
        yield running


def test_an_attempt_that_ends_the_process_has_no_report_and_the_next_one_has(workbench: Workbench) -> None:
    right = (resources.solutions_folder() / "sdpa.py").read_bytes()
    ended = workbench.grade("sdpa", b"import os\nos._exit(0)\n", attempt="ends.py")
    after = workbench.grade("sdpa", right, attempt="sdpa.py")

    assert ended is None
    assert after is not None
    assert after.outcome == "passed"


def test_what_an_attempt_sets_and_prints_does_not_reach_the_next_one(workbench: Workbench) -> None:
    right = (resources.solutions_folder() / "sdpa.py").read_bytes()
    sets = b"torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\nprint('{}')\n"
    first = workbench.grade("sdpa", right + sets, attempt="sets.py")
    second = workbench.grade("sdpa", right, attempt="sdpa.py")

    assert first is not None
    assert second is not None
    assert second.outcome == "passed"
    assert [finding.property for finding in second.findings if finding.outcome != "passed"] == []


def test_all_cases_are_asked_of_what_an_attempt_is_said_to_break_and_of_what_that_needs() -> None:
    loaded = Loaded.of(resources.katas_folder() / "sdpa", resources.solutions_folder() / "sdpa.py")
    whole = {test.property.name: test.property for test in loaded.tests}
    asked = {test.property.name: test.property.cases for test in briefly(loaded, ["gradients"]).tests}
    named = {"gradients", *whole["gradients"].needs}

    assert {len(whole[name].cases) for name in named} != {1}
    assert asked.keys() == whole.keys()
    for name, cases in asked.items():
        assert cases == (whole[name].cases if name in named | {"output_shape"} else whole[name].cases[:1]), name
