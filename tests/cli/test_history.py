"""What is kept, and that keeping it never stops a command."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from attn_kata import catalog, hints
from attn_kata.history import History
from attn_kata.report.model import Finding, Isolation, Report


def report(kata: str = "sdpa", outcome: str = "passed", **findings: str) -> Report:
    return Report(
        kata=kata,
        attempt=f"{kata}.py",
        outcome=outcome,  # type: ignore[arg-type]
        seed=0,
        findings=[
            Finding(
                property=name,
                claim="",
                tier="core",
                outcome=held,
                message=None,
                look_at=None,
                case=None,
                needs=[],
                example=None,
                seconds=0.0,
            )  # type: ignore[arg-type]
            for name, held in findings.items()
        ],
        diagnosis=[],
        ungraded_because=None,
        attempt_output="",
        isolation=Isolation(tier=1, landlock=7, seccomp=True, notes=[]),
        seconds={"total": 1.0},
        versions={},
    )


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def history(home: Path, said: list[str]) -> History:
    return History(said.append, home)


def test_the_last_start_is_the_current_kata(history, said):
    history.started("sdpa", Path("/a/sdpa.py"), "standard")
    history.started("mha", Path("/b/mha.py"), "blank")

    current = history.current()
    assert (current.kata, current.path) == ("mha", Path("/b/mha.py"))
    assert history.path_of("sdpa") == Path("/a/sdpa.py")
    assert said == []


def test_a_path_that_is_not_unicode_comes_back_as_it_was(history, said):
    history.started("sdpa", Path("/a/\udcff.py"), "standard")

    assert history.current().path == Path("/a/\udcff.py")
    assert said == []


def test_the_best_time_runs_from_the_start_to_the_first_pass(history):
    path = Path("/a/sdpa.py")
    history.started("sdpa", path, "standard")
    history.record(report(outcome="failed", values="failed"), path, whole=True)
    history.record(report(values="passed"), path, whole=True)
    history.record(report(values="passed"), path, whole=True)

    progress = history.progress()["sdpa"]
    assert progress.attempts == 3
    assert progress.passed_at is not None
    assert timedelta(0) <= progress.best < timedelta(seconds=30)


def test_a_grading_of_some_properties_is_no_pass(history):
    history.record(report(values="passed"), Path("/a/sdpa.py"), whole=False)

    assert history.progress()["sdpa"].passed_at is None


def test_the_properties_that_fail_most_come_first(history):
    path = Path("/a/sdpa.py")
    history.record(report(outcome="failed", values="failed", shape="passed", late="skipped"), path, whole=True)
    history.record(report(outcome="failed", values="errored", shape="failed"), path, whole=True)

    assert [(worst.property, worst.failed, worst.graded) for worst in history.failing(5)] == [
        ("values", 2, 2),
        ("shape", 1, 2),
    ]


def test_a_data_folder_that_cannot_be_made_costs_one_line(run, folder, home):
    home.write_text("a file, not a folder")
    done = run("start", "sdpa")

    assert done.returncode == 0
    assert (folder / "sdpa.py").exists()
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"Nothing is kept: '{home}/history.db' cannot be used (")
    assert run("hint").stdout.startswith("sdpa, hint 1")  # the only kata of this folder


def test_a_history_that_is_a_folder_costs_one_line(run, home):
    (home / "history.db").mkdir(parents=True)
    done = run("start", "sdpa")

    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("damage", ["garbage", "header only", "no tables", "not a date"])
def test_a_damaged_history_is_set_aside_and_a_new_one_begins(run, home, damage):
    run("start", "sdpa")
    file = home / "history.db"
    if damage == "garbage":
        file.write_bytes(b"this is no database" * 1000)
    elif damage == "header only":
        file.write_bytes(file.read_bytes()[:100] + b"\xff" * 8000)
    else:
        with sqlite3.connect(file) as db:
            db.execute("DROP TABLE current" if damage == "no tables" else "UPDATE start SET at = 'yesterday'")
        db.close()
    broken = file.read_bytes()
    done = run("status")

    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert "history.damaged-1.db" in done.stderr
    assert (home / "history.damaged-1.db").read_bytes() == broken
    assert run("start", "mha").stderr == ""
    assert run("status").stderr == ""


def test_a_history_of_a_newer_version_is_left_as_it_is(run, home):
    run("start", "sdpa")
    with sqlite3.connect(home / "history.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = (home / "history.db").read_bytes()
    done = run("start", "mha")

    assert done.returncode == 0
    assert "newer attn-kata" in done.stderr
    assert (home / "history.db").read_bytes() == before


def test_a_history_that_another_command_holds_costs_one_wait_and_one_line(home, said, monkeypatch):
    monkeypatch.setattr("attn_kata.history.BUSY_SECONDS", 0.2)
    history = History(said.append, home)
    history.started("sdpa", Path("/a/sdpa.py"), "standard")
    holder = sqlite3.connect(home / "history.db")
    holder.execute("BEGIN EXCLUSIVE")
    begun = time.monotonic()
    history.started("mha", Path("/a/mha.py"), "standard")
    history.record(report("mha"), Path("/a/mha.py"), whole=True)
    current = history.current()
    holder.close()

    assert current is None
    assert len(said) == 1
    assert time.monotonic() - begun < 0.4


def test_commands_at_once_lose_nothing(environment, folder, home, said):
    command = [sys.executable, "-m", "attn_kata", "hint", "sdpa"]
    many = [
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    printed = [process.communicate(timeout=60) for process in many]

    assert [error for _, error in printed] == [""] * 4
    assert sorted(text.splitlines()[0] for text, _ in printed) == [
        f"sdpa, hint {number} of 4" for number in range(1, 5)
    ]


def test_a_hint_that_another_command_gives_at_the_same_moment_is_not_given_twice(home, monkeypatch):
    history = History(pytest.fail, home)
    looked = history.hints_given

    def look_and_be_overtaken(kata):
        given = looked(kata)
        history.hint_given(kata, 1)
        return given

    monkeypatch.setattr(history, "hints_given", look_and_be_overtaken)
    assert hints.following(catalog.find("sdpa"), history).number == 2
    assert looked("sdpa") == {1, 2}
