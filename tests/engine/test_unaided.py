"""What passed is asked again where nothing ready-made works: when, and what comes of it. The attacks are in tests/attacks."""

from __future__ import annotations

import types

import pytest

from attn_kata.engine import unaided, withheld
from attn_kata.report.model import Finding


def finding(name: str, outcome: str = "passed", tier: str = "core", message: str | None = None) -> Finding:
    return Finding(
        property=name, claim="", tier=tier, outcome=outcome, message=message, look_at=None, case=None, needs=[],
        example=None, seconds=0.0,
    )  # fmt: skip


PASSED = [finding("values"), finding("from_scratch"), finding("large_scores", "failed", "edge")]


@pytest.mark.parametrize(
    ("findings", "forbidden", "due"),
    [
        (PASSED, {"softmax"}, True),
        (PASSED, set(), False),
        ([*PASSED, finding("gradients", "failed")], {"softmax"}, False),
        ([finding("from_scratch")], {"softmax"}, False),
        ([finding("values")], {"softmax"}, False),
    ],
)
def test_it_is_due_where_everything_holds_and_something_is_forbidden(findings, forbidden, due):
    assert unaided.is_due((findings, {}), forbidden) is due


def test_values_that_hold_again_change_nothing():
    assert unaided.judged((PASSED, {}), [finding("values")]) == (PASSED, {})


@pytest.mark.parametrize(
    ("outcome", "becomes"), [("failed", "failed"), ("errored", "errored"), ("skipped", "errored")]
)
def test_values_that_do_not_hold_again_fail_what_forbids(outcome, becomes):
    findings, failures = unaided.judged((PASSED, {}), [finding("values", outcome, message="why")])

    assert [each.outcome for each in findings] == ["passed", becomes, "failed"]
    assert ("from_scratch" in failures) == (becomes == "failed")
    assert findings[1].message == ("why" if becomes == "errored" else unaided._NOT_WITHOUT)


def ran(source: str) -> dict:
    namespace: dict = {"Withheld": withheld.Withheld}
    code = compile(source, "attempt.py", "exec", dont_inherit=True)
    assert isinstance(code, types.CodeType)
    withheld.run(source.encode(), code, namespace)
    return namespace


def test_a_statement_that_calls_what_is_withheld_is_left_out_and_what_hangs_on_it():
    namespace = ran("one = 1\ntry:\n    raise Withheld\nexcept Exception:\n    two = 2\nassert two\nthree = one + 2\n")

    assert namespace["three"] == 3
    assert "two" not in namespace


def test_without_one_a_statement_that_raises_raises():
    with pytest.raises(NameError):
        ran("assert two\n")


def test_a_future_statement_counts_for_the_whole_of_the_source():
    namespace = ran("from __future__ import annotations\ndef f(x: NotThere): ...\n")

    assert namespace["f"].__annotations__ == {"x": "NotThere"}
