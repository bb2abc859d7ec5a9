"""`attn-kata hunt`, `napkin` and `review`, as a person runs them."""

from __future__ import annotations

import json
import os
import subprocess

import pexpect
import pytest

from attn_kata import catalog
from attn_kata.history import History
from attn_kata.rounds.record import Record


def lines(text: str) -> str:
    return " ".join(text.split())


def test_a_hunt_is_written_watched_mended_and_graded(run, folder, home, environment, ready):
    written = run("hunt", "sdpa", "--bugs", "2", "--seed", "1", "--minutes", "30")
    file = folder / "hunt_sdpa.py"
    kept = Record(pytest.fail, home).hunt_at(file, "sdpa")
    told = file.read_text()

    assert (written.returncode, written.stderr) == (0, "")
    assert "hunt_sdpa.py: Scaled dot-product attention. You have 30 minutes." in written.stdout
    assert "Then: attn-kata grade hunt_sdpa.py" in written.stdout
    assert not any(mistake in told + written.stdout for mistake in kept.spoiled.mistakes)

    python, *arguments = ready.face("watch", "hunt_sdpa.py")
    watching = pexpect.spawn(
        python,
        arguments,
        cwd=str(folder),
        env={**environment, "TERM": "dumb"},
        timeout=60,
        encoding="utf-8",
        dimensions=(50, 100),
    )
    watching.expect("Bug hunt: 0 of 2 mistakes mended")
    watching.close()
    file.write_text(told.replace(kept.spoiled.source.lstrip("\n"), kept.spoiled.base))
    mended = run("grade", "hunt_sdpa.py", "--format", "json")
    status = run("status")

    assert mended.returncode == 0
    body = json.loads(mended.stdout)
    assert ({*body["hunt"]["mended"]}, body["hunt"]["left"]) == (kept.spoiled.mistakes, [])
    assert body["hunt"]["in_time"] is True
    assert "you mended all 2 mistakes" in body["notes"][-1]
    assert status.stdout.startswith("0 of ")  # mending is not writing
    assert "sdpa (bug hunt): due in" in status.stdout
    assert History(pytest.fail, home).gradings() == []


def test_a_review_is_judged_by_lines_on_a_terminal(folder, environment, run, ready):
    python, *arguments = ready.face("review", "sdpa", "--bugs", "1", "--seed", "4")
    child = pexpect.spawn(
        python,
        arguments,
        cwd=str(folder),
        env={**environment, "TERM": "dumb"},
        timeout=40,
        encoding="utf-8",
        dimensions=(50, 100),
    )
    child.expect("Line, what is wrong: ")
    assert "A colleague's code. It looks right, but it has mistakes." in child.before
    child.sendline("nonsense")
    child.expect("'nonsense' does not begin with a line")
    child.expect("Line, what is wrong: ")
    child.sendline("1 the first line is an import")
    child.expect("Line, what is wrong: ")
    child.sendline("")
    child.expect("You found 0 of 1 mistake")
    child.expect("Missed: .* [(]([a-z]+[.][a-z_A-Z]+)[)]")
    mistake = child.match[1]
    line = int(child.expect([r"\n    \d+  "]) + int(child.after.split()[0]))
    child.expect("No known mistake there")
    child.expect("A run shows it: ")
    child.expect(pexpect.EOF)
    child.close()
    named = run("review", "sdpa", "--bugs", "1", "--seed", "4", "--mark", f"{line} {mistake}")

    assert child.exitstatus == 1
    assert named.returncode == 0
    assert f"You named it: {mistake}" in named.stdout
    assert "sdpa (review): due in" in run("status").stdout


def test_numbers_are_asked_until_they_are_given_and_what_was_answered_is_kept(run, folder, environment, ready):
    def napkin(typed: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = ["napkin", "sdpa", "--seed", "5", *more]
        return ready.run(command, cwd=folder, env=environment, lines=typed)

    asked = napkin("many\n\n", "--count", "2")
    answers = [
        line.partition("It is ")[2].rstrip(".") for line in lines(asked.stdout).replace("Skipped.", "\n").split("\n")
    ]
    first = answers[1].split(".")[0]
    right = napkin(f"{first}\n", "--count", "1")
    status = run("status")

    assert "'many' is not a number" in asked.stderr
    assert (asked.returncode, right.returncode) == (1, 0)
    assert "0 of 2 right" in asked.stdout
    assert "Right." in right.stdout
    assert "1 of 1 right. More, with new numbers: attn-kata napkin sdpa" in right.stdout
    assert "sdpa (numbers): due" in status.stdout
    assert napkin("\n" * 60, "--count", "50").stdout.count("Skipped.") >= 10


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["hunt", "sdap"], "There is no kata 'sdap'. Did you mean 'sdpa'?"),
        (["hunt", "sdpa", "--bugs", "5"], "5 is not in the range 1<=x<=4"),
        (["hunt", "sdpa", "--minutes", "0"], "0 is not in the range"),
        (["hunt", "sdpa", "--minutes", "nan"], "'nan' is not a valid integer"),
        (["hunt", "sdpa", "--all-katas"], "'sdpa' is a kata, and --all-katas draws one."),
        (["napkin"], "You have not started a kata yet."),
        (["review", "sdpa", "--mark", "3 x"], "--mark needs the code that you marked."),
        (["napkin", "sdpa", "--count", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_is_said(run, folder, command, said):
    done = run(*command)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in lines(done.stderr)
    assert "Traceback" not in done.stderr
    assert os.listdir(folder) == []


def test_none_of_them_runs_beside_a_mock_interview(run):
    run("interview", "start", "--kata", "sdpa")

    for command in ("hunt", "napkin", "review"):
        done = run(command, "sdpa")
        assert done.returncode == 2
        assert f"'attn-kata {command}' does not run during mock interview 1" in done.stderr


def test_a_seed_draws_one_of_all_katas():
    from attn_kata.cli import rounds

    drawn = {rounds.kata_of(None, True, seed, History(pytest.fail)).slug for seed in range(200)}

    assert drawn == set(catalog.slugs())
