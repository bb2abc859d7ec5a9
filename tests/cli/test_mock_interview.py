"""Commands that show answers refuse to run while a mock interview runs."""

from __future__ import annotations

import pytest


@pytest.fixture
def attempt(run, folder):
    """An attempt that could be graded."""
    assert run("start", "sdpa").returncode == 0
    return folder / "sdpa.py"


@pytest.mark.parametrize("command", [("hint", "sdpa"), ("solution", "sdpa", "--give-up"), ("grade",), ("watch",)])
def test_it_waits_from_the_briefing_on_until_the_interview_is_left(run, attempt, command):
    run("interview", "start", "--kata", "mha")
    waits = run(*command)
    run("interview", "next")
    waits_still = run(*command)
    run("interview", "end", "--yes")

    for told in (waits, waits_still):
        assert told.returncode == 2
        assert told.stdout == ""
        assert told.stderr.startswith(f"'attn-kata {command[0]}' does not run during mock interview 1 (mha)")
        assert "attn-kata interview end" in told.stderr
    if command[0] == "hint":
        assert run(*command).returncode == 0


def test_hints_asked_for_in_vain_are_not_counted(run, attempt):
    run("interview", "start", "--track", "warm-up")
    run("hint", "sdpa")
    row = next(line for line in run("status").stdout.splitlines() if line.startswith("> sdpa"))

    assert row.split()[-1] == "0"


def test_a_coached_interview_hides_nothing(run, attempt):
    run("interview", "start", "--kata", "mha", "--coached")

    assert run("hint", "sdpa").returncode == 0
