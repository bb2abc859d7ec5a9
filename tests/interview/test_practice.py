"""What to practise next, from what was graded."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta, timezone

from attn_kata import practice
from attn_kata.practice import Graded
from attn_kata.report.model import Finding, Isolation, Report

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)


def graded(kata: str, *, days_ago: float, passed: bool = True, failed: tuple[str, ...] = ()) -> Graded:
    return Graded(kata=kata, at=NOW - timedelta(days=days_ago), passed=passed and not failed, failed=failed)


def test_nothing_graded_is_nothing_suggested():
    assert practice.schedule([], now=NOW) == []


def test_what_failed_last_comes_first():
    every = [graded("sdpa", days_ago=90), graded("mha", days_ago=1, failed=("values",))]

    assert [one.kata for one in practice.schedule(every, now=NOW)] == ["mha", "sdpa"]
    assert practice.schedule(every, now=NOW)[0].failing == ("values",)


def test_a_pass_puts_it_off_and_each_further_one_for_longer():
    once = practice.schedule([graded("sdpa", days_ago=30)], now=NOW)[0]
    twice = practice.schedule([graded("sdpa", days_ago=30), graded("sdpa", days_ago=25)], now=NOW)[0]

    assert timedelta(days=1) <= once.due - (NOW - timedelta(days=30)) < timedelta(days=10)
    assert twice.due - (NOW - timedelta(days=25)) > once.due - (NOW - timedelta(days=30))
    assert once.is_due(NOW)


def test_failing_first_comes_back_sooner_than_passing_at_once():
    at_once = [graded("sdpa", days_ago=2)]
    struggled = [graded("sdpa", days_ago=2.01, failed=("values",)), graded("sdpa", days_ago=2)]

    assert practice.schedule(struggled, now=NOW)[0].due < practice.schedule(at_once, now=NOW)[0].due


def test_many_gradings_in_one_sitting_are_one_review():
    one = [graded("sdpa", days_ago=5)]
    many = [graded("sdpa", days_ago=5 + minute / 1440) for minute in (30, 20, 10, 0)]

    assert practice.schedule(many, now=NOW)[0].due - practice.schedule(one, now=NOW)[0].due < timedelta(minutes=1)


def report(kata: str, **outcomes: str) -> Report:
    findings = [
        Finding(
            property=name,
            claim="",
            tier="core",
            outcome=outcome,
            message=None,
            look_at=None,
            case=None,
            needs=[],
            example=None,
            seconds=0.0,
        )
        for name, outcome in outcomes.items()
    ]
    passed = set(outcomes.values()) == {"passed"}
    return Report(
        kata=kata,
        attempt="a.py",
        outcome="passed" if passed else "failed",
        seed=0,
        findings=findings,
        diagnosis=[],
        ungraded_because=None,
        attempt_output="",
        isolation=Isolation(tier=1, landlock=0, seccomp=True, notes=[]),
        seconds={"total": 1.0},
        versions={},
    )


def test_it_reads_the_history_and_only_whole_gradings(history, tmp_path):
    history.record(report("sdpa", values="failed", shape="passed"), tmp_path / "sdpa.py", whole=True)
    history.record(report("sdpa", values="passed", shape="passed"), tmp_path / "sdpa.py", whole=False)
    history.record(report("mha", values="passed"), tmp_path / "mha.py", whole=True)
    every = history.gradings()

    assert [(one.kata, one.passed, one.failed) for one in every] == [("sdpa", False, ("values",)), ("mha", True, ())]
    assert [one.kata for one in practice.what_next(history)] == ["sdpa", "mha"]


def test_a_missing_history_suggests_nothing(history):
    assert practice.what_next(history) == []


def test_it_imports_no_torch():
    import subprocess

    program = "import sys, fsrs, attn_kata.practice; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
