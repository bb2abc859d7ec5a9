"""`grade --untrusted`: another person's file is not graded below tier 1, and its report gives nothing of the inputs away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import attn_kata
from attn_kata.cli import untrusted_file
from attn_kata.engine.client import Engine, TooWeak
from attn_kata.report.formats import FORMATS
from attn_kata.report.untrusted import DEVICE_UNVERIFIED, without_hidden_inputs

HERE = Path(__file__).parent
# Says its inputs wherever it can: in prints, exception texts, sizes and values.
TALKS = """
import torch


def scaled_dot_product_attention(q, k, v):
    told = " ".join(f"TOLD{value:.6f}" for value in q.flatten().tolist()[:9])
    print(told)
    if q.dtype != torch.float64:
        raise ValueError(told)
    return v.mean(-2, keepdim=True).expand(*q.shape[:-1], v.shape[-1]) + q.flatten()[0]
"""


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    file = tmp_path / "sdpa.py"
    file.write_text(TALKS)
    return file


@pytest.fixture
def run(ready: Any, attempt: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run("--untrusted")`: the command on the attempt. `before`: what a new Python does first; without, one that is ready."""
    home = attempt.with_name("home")
    packages = os.pathsep.join((str(Path(attn_kata.__file__).parents[1]), str(HERE)))
    env = {**os.environ, "ATTN_KATA_HOME": str(home), "PYTHONPATH": packages}

    def done(*arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
        asked = ["grade", str(attempt), *arguments]
        if not before:
            told: subprocess.CompletedProcess[str] = ready.run(asked, cwd=attempt.parent, env=env)
            return told
        command = attempt.with_name("command.py")
        command.write_text(f"import sys\n{before}\nfrom attn_kata.cli import main\nsys.exit(main())\n")
        options: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "timeout": 60, "check": False}
        return subprocess.run([sys.executable, str(command), *asked], env=env, **options)

    return done


def test_no_format_shows_an_input_or_a_print(attempt, shared_engine):
    full = shared_engine.grade("sdpa", TALKS.encode(), attempt="sdpa.py")
    shown = without_hidden_inputs(full)
    numbers = {number for finding in full.findings for number in re.findall(r"\d+\.\d{3,}", finding.message or "")}
    assert numbers
    assert "TOLD" in full.attempt_output
    assert any(finding.example for finding in full.findings)

    from attn_kata.report.formats import render

    for name in FORMATS:
        text = render(replace(shown, seconds={}), name)
        assert "TOLD" not in text, name
        assert not [number for number in numbers if number in text], name
        assert "left out" in text or name not in ("terminal", "json", "html"), name
    assert [finding.outcome for finding in shown.findings] == [finding.outcome for finding in full.findings]
    assert (shown.outcome, shown.diagnosis) == (full.outcome, full.diagnosis)
    assert shown.pictures == []
    assert all(finding.case is None and finding.example is None for finding in shown.findings)


def test_reasons_in_our_own_words_stay_and_what_an_attempt_added_goes(engine_report):
    messages = [
        ("errored", "no answer within 10 s", "no answer within 10 s"),
        ("errored", "it crashed (SIGSEGV)", "it crashed (SIGSEGV)"),
        ("errored", "it ended its process (exit status 77)", "it ended its process"),
        ("errored", "its process sent something that is not a reply: it announces 12345 texts", "it gave no answer"),
        ("failed", "calls aten::softmax_0_123, which is ready-made", "calls something ready-made"),
        ("failed", "raised ValueError: 0.123", "it raises an exception"),
        ("failed", "out[0] is 0.123, expected 0.4", "it does not hold"),
        ("failed", "not written yet: it raises NotImplementedError", "not written yet: it raises NotImplementedError"),
        ("skipped", "needs values, which does not hold", "needs values, which does not hold"),
        ("passed", None, None),
    ]
    finding = engine_report.findings[0]
    report = replace(
        engine_report, findings=[replace(finding, outcome=outcome, message=message) for outcome, message, _ in messages]
    )

    assert [finding.message for finding in without_hidden_inputs(report).findings] == [told for _, _, told in messages]


def test_lines_that_its_process_names_are_left_out_of_the_notes(engine_report):
    note = "q and k are right (line 12). The scores are the first that are wrong: line 13"

    assert without_hidden_inputs(replace(engine_report, notes=[note])).notes[0] == "q and k are right"


def test_what_rests_on_its_own_word_is_said_where_it_holds(engine_report):
    finding = engine_report.findings[0]
    cases = (("device", "passed", 1), ("mask_device", "passed", 1), ("device", "failed", 0), ("values", "passed", 0))
    for name, outcome, said in cases:
        shown = without_hidden_inputs(
            replace(engine_report, findings=[replace(finding, property=name, outcome=outcome)])
        )
        assert shown.notes.count(DEVICE_UNVERIFIED) == said


@pytest.fixture(scope="module")
def engine_report(shared_engine):
    return shared_engine.grade(
        "sdpa", b"def scaled_dot_product_attention(q, k, v): return v", attempt="sdpa.py", diagnose=False
    )


@pytest.mark.usefixtures("ready_engines")
def test_below_tier_1_nothing_of_the_attempt_is_run(tmp_path):
    mark = tmp_path / "mark"
    source = f"open({str(mark)!r}, 'w').close()\ndef scaled_dot_product_attention(q, k, v): return v\n".encode()
    with Engine(tier=0) as engine:
        with pytest.raises(TooWeak):
            engine.grade("sdpa", source, attempt="sdpa.py", least_tier=1)
        assert not mark.exists()

        assert engine.grade("sdpa", source, attempt="sdpa.py").outcome == "failed"
        assert mark.exists()


def test_the_command_grades_it_and_remembers_nothing(attempt, run):
    done = run("--untrusted")
    again = run("--untrusted", "--format", "json")

    assert json.loads(again.stdout)["seed"] != 0
    assert (done.returncode, done.stderr) == (1, "")
    assert "TOLD" not in done.stdout
    assert "FAIL   values" in done.stdout
    assert "left out" in done.stdout
    assert not re.search(r"\bB=\d", done.stdout)
    assert "Next:" not in done.stdout  # who reads it did not write the file, and must not grade it as their own
    (drawn,) = re.findall(r"To grade with the same inputs again: --seed (\d+)", done.stdout)
    assert json.loads(run("--untrusted", "--seed", drawn, "--format", "json").stdout)["seed"] == int(drawn)
    history = attempt.parent / "home"
    assert b"sdpa" not in b"".join(file.read_bytes() for file in history.rglob("*") if file.is_file())


def test_another_persons_file_cannot_hold_the_answers_because_its_inputs_are_drawn():
    drawn = {untrusted_file.seed(True, None) for _ in range(4)}

    assert len(drawn) == 4
    assert untrusted_file.seed(True, 7) == 7
    assert untrusted_file.seed(False, None) == 0


def test_the_command_refuses_a_lower_tier_at_once(run):
    done = run("--untrusted", "--tier", "0")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("--untrusted needs isolation of tier 1 or more, but --tier is 0.")


def test_the_command_refuses_where_the_system_has_less_and_says_why(run):
    done = run("--untrusted", before="import elsewhere; elsewhere.refuse_landlock()")

    assert (done.returncode, done.stdout) == (2, "")
    assert "Another person's file needs isolation of tier 1 or more" in done.stderr
    assert "No Landlock" in done.stderr


def test_a_tier_may_be_chosen_for_ones_own_file(run):
    for tier in ("0", "2"):
        done = run("--tier", tier, "--format", "json")

        assert done.returncode == 1
        assert f'"tier": {tier}' in done.stdout or tier == "2"
