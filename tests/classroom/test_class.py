"""`attn-kata class` as a teacher runs it: a real process, killed, resumed, refused, and what its pages give away."""

from __future__ import annotations

import csv
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest

import attn_kata
from attn_kata.classroom import outputs, pages, store
from attn_kata.classroom.summary import Tally

from .conftest import KATA, RIGHT, SCALE, STRIDED, Run, source, write_files

SCHEMA = json.loads((Path(attn_kata.__file__).parent / "classroom" / "results.schema.json").read_text())
SEED = "918273645"
DEFINITION = "def scaled_dot_product_attention(q, k, v):\n    "

# Each says what it has seen: in a print, in an exception at import, in the names it defines, in an exception in a call.
SPIES = {
    "Spy Import": "import torch\nraise ValueError(torch.initial_seed())\n",
    "Spy Names": "import torch\nglobals()[f'seed_{torch.initial_seed()}'] = lambda: 0\n",
    "Spy Call": f"{DEFINITION}print(q)\n    raise ValueError(f'saw {{q.flatten().tolist()}}')\n",
    "Spy Shape": f"import torch\n{DEFINITION}return torch.zeros(q.shape[0], 918273645 % 7919)\n",
}
DAMAGE = {
    "Hang": f"import time\n{DEFINITION}while True: time.sleep(1)\n",
    "Flood": f"{DEFINITION}print('x' * 10_000_000)\n    return q\n",
    "Crash": f"import os, signal\n{DEFINITION}os.kill(os.getpid(), signal.SIGSEGV)\n",
    "Binary": "\x00\x01\x7fELF",
    "=HYPERLINK(1)": "x = (",
    "<b>Bold": source(STRIDED),
}


def summary_of(folder: Path) -> dict[str, dict[str, object]]:
    """results.json by student, checked against the schema."""
    body = json.loads((folder / "results.json").read_text())
    jsonschema.validate(body, SCHEMA)
    return {student["student"]: student for student in body["students"]}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, ready: Any) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A class with right, wrong, hostile and missing submissions, graded once."""
    base = tmp_path_factory.mktemp("class")
    contents = {"Anna": source(RIGHT), "Ben": source(SCALE), "Dee": "", **SPIES, **DAMAGE}
    write_files(base / "subs", {f"{name}/{KATA}.py": text for name, text in contents.items()})
    (base / "subs" / "Empty").mkdir()
    write_files(base / "subs" / "Twice", {"a.py": source(RIGHT), "b.py": source(RIGHT)})
    command = ["class", "subs", "--kata", KATA, "--seed", SEED, "--timeout", "4"]
    done = ready.run(command, cwd=base, env={**os.environ, "ATTN_KATA_HOME": str(base / "home")}, timeout=200)
    return base / f"{KATA}-class", done


def test_everybody_is_in_the_results_and_nobody_costs_another_one_a_verdict(graded) -> None:
    folder, done = graded
    students = summary_of(folder)
    with (folder / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))

    assert done.returncode == 3, done.stderr
    assert (students["Anna"]["verdict"], students["Anna"]["score"]) == ("passed", 100)
    assert (students["Ben"]["mistakes"], students["Ben"]["score"]) == (["scale.missing"], 85)
    assert students["<b>Bold"]["mistakes"] == ["layout.view_of_strided"]
    assert students["<b>Bold"]["score"] == 85
    for name in ("Hang", "Flood", "Crash", "Spy Call", "Spy Shape"):
        assert students[name]["verdict"] == "failed", name
    for name in ("Dee", "Binary", "=HYPERLINK(1)", "Spy Import", "Spy Names"):
        assert (students[name]["verdict"], students[name]["score"]) == ("cannot run", 0), name
    for name in ("Empty", "Twice"):
        assert (students[name]["verdict"], students[name]["score"]) == ("not graded", None), name
    assert students["Empty"]["because"] == "There is no Python file and no notebook."
    assert "2 files define" in str(students["Twice"]["because"])
    assert all(
        student["score"] == pytest.approx(sum(term["points"] for term in student["sum"]))
        for student in students.values()
        if student["score"] is not None
    )
    assert [row["student"].removeprefix("'") for row in rows] == list(students)
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    assert "13 of 13 graded" in done.stderr
    cannot_run, _, not_graded = done.stdout.partition("Cannot run: 0 points\n")[2].partition(
        "Not graded: no points yet. "
    )
    for name, reasons in (("Dee", cannot_run), ("Empty", not_graded)):  # in full: the table cuts them
        assert f"{name}: {' '.join(str(students[name]['because']).split())}" in " ".join(reasons.split())
    assert "ungraded" not in (done.stdout + done.stderr).lower()
    empty, twice = ((folder / "students" / f"{name}.html").read_text() for name in ("Empty", "Twice"))
    assert "NOT GRADED" in empty
    assert "isolation" not in empty, "nothing was run"
    assert "&#39;Twice/b.py&#39;" in twice, "the whole reason: it is about the student's own files"
    assert "1 Scores not divided (scale.missing)" in " ".join(done.stdout.split())
    assert not (folder.parent / "home").exists(), "the teacher's own progress is not touched"


def test_a_students_page_gives_nothing_away(graded) -> None:
    folder, _ = graded
    every = list(store.Store(folder, print).kept())
    names = pages.PageNames()
    told = []
    for kept in every:
        page = (folder / "students" / f"{names.of(kept.listed.name)}.html").read_text()
        others = [
            each.listed.name for each in every if each.listed.name != kept.listed.name and len(each.listed.name) > 3
        ]
        hidden = {SEED, "−0.", "expected ", *others}
        if kept.report is not None:
            said = " ".join(
                filter(None, [*(each.message for each in kept.report.findings), kept.report.attempt_output])
            )
            cases = [f"{name}={value}" for each in kept.report.findings for name, value in (each.case or {}).items()]
            hidden |= {*re.findall(r"-?\d+\.\d{3,}", said), *cases}
        own = (*re.findall(r"\d{4,}", kept.source.decode("utf-8", "replace")),)  # a student may see the own source
        told += [(kept.listed.name, word) for word in hidden if word in page and word not in own]

    assert [pair for pair in told if pair[1] != SEED or "Spy" not in pair[0]] == []
    assert all(SEED not in (folder / "students" / f"{name}.html").read_text() for name in ("Spy_Import", "Spy_Names"))
    assert SEED in (folder / "teacher" / "Spy_Import.html").read_text(), "the spy has seen it"
    assert "saw [" in (folder / "teacher" / "Spy_Call.html").read_text()
    assert "+100  everything" in (folder / "students" / "Ben.html").read_text()
    assert "<b>Bold" not in (folder / "class.html").read_text()


@pytest.mark.parametrize(
    ("because", "told"),
    [
        ("while it was imported: the grading ran out of time", "while it was imported: the grading ran out of time"),
        ("while it was read: it crashed (SIGSEGV) 918", "while it was read: it crashed (SIGSEGV)"),
        ("while it was imported: it said 918", "while it was imported"),
        ("it raises while it is imported: raised ValueError: 918", "it raises while it is imported"),
        ('it has no "f"; it defines seed_918: it ran out of memory', 'it has no "f"'),
    ],
)
def test_a_student_is_told_why_it_cannot_run_in_our_words_only(graded, because: str, told: str) -> None:
    folder, _ = graded
    some = next(kept.report for kept in store.Store(folder, print).kept() if kept.report is not None)

    assert pages.for_student(replace(some, ungraded_because=because)).ungraded_because == told


def test_a_verdict_for_want_of_time_says_so(graded) -> None:
    """The verdict alone looks like that of a wrong attempt."""
    folder, _ = graded
    every = {kept.listed.name: kept for kept in store.Store(folder, print).kept()}
    anna, report = every["Anna"], every["Anna"].report
    late = [replace(each, outcome="errored", message="the grading ran out of time") for each in report.findings[-1:]]
    tally = Tally(store.RunInfo(kata=KATA, seed=1, submissions=""), None, [])
    short = replace(anna, report=replace(report, outcome="failed", findings=[*report.findings[:-1], *late]))

    assert "--timeout" in tally.add(short, "Anna").because
    assert tally.add(every["Ben"], "Ben").because == ""


def test_the_same_command_grades_nothing_again_and_another_rubric_only_scores_again(graded, run: Run) -> None:
    folder, _ = graded
    before = (folder / "results.json").read_bytes()
    rubric = folder.parent / "rubric.toml"
    rubric.write_text("[mistakes]\nscale = 40\n")
    again = run("class", "subs", "--kata", KATA, "--timeout", "4", "--rubric", rubric, cwd=folder.parent)
    other = summary_of(folder)
    plain = run("class", "subs", "--kata", KATA, "--timeout", "4", cwd=folder.parent)
    shown = run("class", "show", folder)

    assert "graded" not in again.stderr
    assert other["Ben"]["score"] == 60
    assert plain.stdout.replace("sdpa-class", str(folder)).split() == shown.stdout.split()
    assert (folder / "results.json").read_bytes() == before
    assert shown.returncode == 3


def test_killed_at_any_instant_it_goes_on_and_grades_nothing_twice(
    tmp_path: Path, run: Run, environment, ready
) -> None:
    count = 24
    write_files(tmp_path / "work" / "subs", {f"s{n:02}.py": f"# {n}\n{source(RIGHT)}" for n in range(count)})
    options = ["class", "subs", "--kata", KATA, "--jobs", "2"]
    database = tmp_path / "work" / f"{KATA}-class" / "class.db"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**environment, "TMPDIR": str(temporary)}
    first: dict[str, bytes] = {}
    engines: list[psutil.Process] = []
    for least in (3, 7):
        # The engines of the first one are its own; those of the second have loaded already.
        command = [sys.executable, "-m", "attn_kata", *options] if least == 3 else ready.face(*options)
        process = subprocess.Popen(
            command, cwd=tmp_path / "work", env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        while len(_results(database)) < least and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGSTOP)
        if least == 3:
            refused = run("class", "subs", "--kata", KATA)
            assert refused.returncode == 2
            assert "Another 'attn-kata class' is writing" in refused.stderr
        engines += psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kept = _results(database)
        assert {name: kept[name] for name in first} == first, "a result that was there is the same"
        first = kept
    done = run("class", "subs", "--kata", KATA, "--jobs", "2")
    graded = re.search(r"^\d+ of 24 graded", done.stderr, re.MULTILINE)

    assert 7 <= len(first) < count
    assert done.returncode == 0, done.stderr
    assert graded
    assert int(graded[0].split()[0]) == len(first) + 1, "the first result after those that were there"
    assert len(_results(database)) == count == len(summary_of(database.parent))
    assert {name: _results(database)[name] for name in first} == first
    assert len(engines) >= 2
    assert psutil.wait_procs(engines, 10)[1] == [], "engines end with the command that started them"
    assert list(temporary.iterdir()) == [], "and remove what they wrote"


def _results(database: Path) -> dict[str, bytes]:
    """What is stored, by student. Not opened read-only: a write that a kill has cut off must be taken back first."""
    try:
        with sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=5) as db:
            return dict(db.execute("SELECT student, report FROM result").fetchall())
    except sqlite3.OperationalError:
        return {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("class",), "Name one folder or zip"),
        (("class", "subs"), "Which kata is it?"),
        (("class", "subs", "--kata", "sdpb"), "Did you mean 'sdpa'?"),
        (("class", "nowhere", "--kata", KATA), "There is no folder or zip 'nowhere'."),
        (("class", "empty", "--kata", KATA), "'empty' has no submissions."),
        (("class", "subs", "--kata", KATA, "--out", "other"), "'other' has other files in it"),
        (("class", "subs", "--kata", KATA, "--jobs", "0"), "0 is not in the range"),
        (("class", "subs", "--kata", KATA, "--rubric", "none.toml"), "none.toml cannot be read"),
        (("class", "show", "subs"), "'subs' has no results of a class."),
        (("class", "subs", "--kata", KATA, "--dask", "tcp://127.0.0.1:1"), "There is no dask scheduler at"),
    ],
)
def test_a_mistake_of_the_teacher_is_one_sentence(tmp_path: Path, run: Run, arguments, said: str) -> None:
    write_files(tmp_path / "work", {"subs/a.py": source(RIGHT), "other/thesis.txt": "", "empty/.hidden.py": ""})
    before = sorted(path for path in tmp_path.rglob("*") if "sdpa-class" not in str(path))
    done = run(*arguments)

    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(path for path in tmp_path.rglob("*") if "sdpa-class" not in str(path)) == before


def test_a_disk_that_fills_is_said_and_what_is_graded_stays(tmp_path: Path, run: Run) -> None:
    """A limit on the size of every file stands for the full disk: the database and a page hit it alike."""
    write_files(
        tmp_path / "work", {f"subs/s{n}.py": f"{source(RIGHT)}\n# {os.urandom(20_000).hex()}" for n in range(4)}
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, resource.RLIM_INFINITY))

    full = run("class", "subs", "--kata", KATA, "--jobs", "1", preexec_fn=limit)
    kept = _results(tmp_path / "work" / f"{KATA}-class" / "class.db")
    done = run("class", "subs", "--kata", KATA, "--jobs", "1")

    assert full.returncode == 2, full.stderr
    assert "cannot be written" in full.stderr
    assert "give the same command again" in full.stderr
    assert 0 < len(kept) < 4
    assert done.returncode == 0, done.stderr
    assert len(summary_of(tmp_path / "work" / f"{KATA}-class")) == 4


def test_page_names_are_different_files_everywhere() -> None:
    names = pages.PageNames()

    assert [names.of(name) for name in ("Ann", "ann", "../x", "", "A" * 300, "a/b", "a_b", "Ann-2", "é", "e\u0301")] == [
        "Ann", "ann-2", "x", "student", "A" * 80, "a_b", "a_b-2", "Ann-2-2", "é", "é-2",
    ]  # fmt: skip
    longest = [names.of("\U00020000" * 120), names.of("\U00020000" * 120)]
    assert len(set(longest)) == 2
    assert all(len(f".{name}.html.new".encode()) <= 255 for name in longest), "no system takes a longer name"


def test_files_of_ours_that_are_left_half_written_are_removed(graded) -> None:
    folder, _ = graded
    (folder / "students" / ".Ann.html.new").write_text("half")
    (folder / "students" / "Gone.html").write_text("a student who left")
    (folder / "students" / "notes.txt").write_text("the teacher's own")
    found, info = store.existing(folder, print)
    outputs.write(found, info, None)

    assert not (folder / "students" / ".Ann.html.new").exists()
    assert not (folder / "students" / "Gone.html").exists()
    assert (folder / "students" / "notes.txt").exists()
