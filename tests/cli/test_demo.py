"""`attn-kata demo`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.cli.demo import KATA

_KATA = catalog.find(KATA)
_SHIPPED = [_KATA.folder / f"test_{KATA}.py", _KATA.folder / "wrong.toml", _KATA.solution]

pytestmark = pytest.mark.skipif(not all(file.exists() for file in _SHIPPED), reason=f"{KATA} is not complete yet")


def test_a_failing_and_a_passing_attempt_are_graded_and_nothing_is_kept(run, home):
    done = run("demo")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    verdicts = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith(("FAILED", "PASSED"))]
    assert verdicts == [["FAILED", KATA], ["PASSED", KATA]]
    assert done.stdout.splitlines()[-1] == "Your turn: attn-kata start sdpa"
    assert not home.exists()

    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    printed = next(block for block in readme.split("```\n") if block.startswith("FAILED")).splitlines()
    said = set(map(without_drawn, done.stdout.splitlines()))
    assert [line for line in printed[1:] if without_drawn(line) not in said] == []


def without_drawn(line: str) -> str:
    """A line without what follows from how a hidden test draws its inputs, which may change at any time."""
    return re.sub(r"-?\d+\.\d{4}", "#", line)
