"""The commands as people type them: real processes, from the first one to the scorecard."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
import time
from pathlib import Path

import pexpect
import pytest

from attn_kata.interview import content, follow_ups

from .conftest import RIGHT


def time_is_up(home: Path) -> None:
    """As if the session had begun ten hours ago."""
    with sqlite3.connect(home / "interview.db") as db:
        db.execute("UPDATE event SET wall = wall - 36000, boot = boot - 36000")


def overtake(desk) -> None:
    """The session's file holds a right attempt that prints."""
    file = desk.store.active().file
    file.write_bytes(RIGHT.replace(b"    return", b"    print('\\x1b[31mshapes', q.shape)\n    return"))


def test_a_mock_session_from_start_to_scorecard(run, desk, home, folder):
    started = run("start", "--track", "warm-up")
    assert started.returncode == 0
    assert "Scaled dot-product attention, 15 minutes" in started.stdout
    assert "A worked example:" in started.stdout
    assert "-> " not in started.stdout  # no answer before the question

    asked = run("ask", "are", "the", "inputs", "always", "4d?")
    assert "-> " in asked.stdout

    coding = run("next")
    assert "Your file: interview-1/sdpa.py" in coding.stdout
    assert "Left: 1" in coding.stdout

    untouched = run("run")
    assert untouched.returncode == 1
    assert "The example: scaled_dot_product_attention is not written yet." in untouched.stdout

    (folder / "interview-1" / "sdpa.py").write_bytes(
        b"def scaled_dot_product_attention(q, k, v):\n    return q @ k @ v[0]\n"
    )
    wrong = run("run")
    assert wrong.returncode == 1
    assert "The example:" in wrong.stdout
    assert not re.search(r"values|gradients|look at|FAIL|PASS|hidden", wrong.stdout)  # nothing of what is hidden

    overtake(desk)
    good = run("run")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "shapes torch.Size([1, 1, 2, 2])" in good.stdout
    assert good.stdout.count("shapes") == 1  # the worked example alone
    assert "\x1b" not in good.stdout
    assert "The example: out is as expected." in good.stdout

    assert "Handed in." in run("submit").stdout
    questions = run("next").stdout
    session = desk.store.active()
    assert session.follow_ups[0]["ask"][:30] in " ".join(questions.split())
    for place, one in enumerate(session.follow_ups, 1):
        answered = run("answer", str(place), *str(one.get("answer", "the running maximum")).split())
        assert answered.returncode == 0
        assert answered.stdout.startswith(
            ("Answer saved.", "     A model answer has these points.")
        )  # not whether it is right
    free = next(place for place, one in enumerate(session.follow_ups, 1) if one["kind"] == "free")
    assert "[x] 2." in run("tick", str(free), "2").stdout

    review = run("next")
    assert review.returncode == 0, review.stderr
    assert "all 1" in review.stdout
    assert "Overall: " in review.stdout
    assert "first run" in review.stdout
    assert max(map(len, review.stdout.splitlines())) <= 80

    page = run("export", "--output", "page.html")
    assert "page.html" in page.stderr
    assert "<!doctype html>" in (folder / "page.html").read_text("utf-8")
    body = json.loads(run("export", "--format", "json").stdout)
    ran = [point for point in body["timeline"] if point["kind"] == "ran"]
    assert (ran[0]["held"], ran[-1]["held"]) == (0, ran[-1]["core"])
    assert body["taken"][0]["report"]["passed"] is True
    assert "# Interview 1" in run("export", "1", "--format", "markdown").stdout

    assert "is closed" in run("next").stdout
    listed = json.loads(run("list", "--json").stdout)
    assert [(one["id"], one["state"]) for one in listed] == [(1, "closed")]
    assert listed[0]["overall"] in ("yes", "strong yes", "no")


def test_a_coached_session_shows_findings_and_is_marked(run, desk):
    run("start", "--track", "warm-up", "--coached")
    run("next")
    desk.store.active().file.write_bytes(
        b"def scaled_dot_product_attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n"
    )
    shown = run("run")

    assert shown.returncode == 1
    assert "FAIL" in shown.stdout
    assert "values" in shown.stdout
    assert "coached" in run("status").stdout
    assert "paused" in run("pause").stdout
    assert "coached" in run("list").stdout


def test_time_up_on_any_command_takes_and_grades_what_is_on_the_disk(run, desk, home):
    run("start", "--track", "warm-up")
    run("next")
    overtake(desk)
    run("status")
    time_is_up(home)
    told = run("submit")

    assert told.returncode == 2
    assert "The time is up. Your file is taken as it is on the disk." in told.stderr
    assert "Next: attn-kata interview next" in run("status").stdout
    run("next")
    review = run("next", "--skip")
    assert "sdpa (on the disk)" in review.stdout
    assert "PASSED" in review.stdout


def test_an_attempt_that_hangs_or_dies_is_a_finding_of_the_run(run, desk):
    run("start", "--track", "warm-up")
    run("next")
    desk.store.active().file.write_bytes(b"import os\nos._exit(3)\n")
    done = run("run")

    assert done.returncode == 3
    assert "It does not run" in done.stdout
    desk.store.active().file.write_bytes(b"def broken(:\n")
    done = run("run")
    assert done.returncode == 3
    assert "not Python" in done.stdout
    assert "in line 1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["start", "--minutes", "0"], "'0' minutes is too short for an interview"),
        (["start", "--minutes", "-5"], "'-5' minutes is too short for an interview"),
        (["start", "--minutes", "1000000"], "'1000000' minutes is too long for an interview"),
        (["start", "--minutes", "1e999"], "minutes is too long for an interview"),
        (["start", "--minutes", "nan"], "'nan' minutes is too short for an interview"),
        (["start", "--minutes", "soon"], "'soon' is not a number of minutes"),
        (["start", "--track", "cor"], "There is no plan 'cor'. Did you mean 'core'?"),
        (["start", "--kata", "sdpaa"], "There is no kata 'sdpaa'. Did you mean 'sdpa'?"),
        (["start", "--kata", "sdpa", "--kata", "sdpa"], "'sdpa' is named more than once"),
        (["start", "--kata", "sdpa", "--track", "core"], "a plan or katas, not both"),
        (["start", "sdpa"], "'sdpa' is not an option"),
        (["show", "77"], "There is no interview '77'"),
        (["show", "seven"], "'seven' is not the number of an interview"),
        (["show"], "There are no interviews yet"),
        (["export", "3"], "There is no interview '3'"),
        (["delete", "3", "--yes"], "There is no interview '3'"),
        (["status"], "No interview is running"),
        (["run"], "No interview is running"),
        (["submit"], "No interview is running"),
        (["next"], "No interview is running"),
        (["resume"], "No interview is running"),
        (["end", "--yes"], "No interview is running"),
        (["answer", "1", "2"], "No interview is running"),
    ],
)
def test_without_a_session_every_mistake_is_said_with_the_next_step(run, arguments, said):
    done = run(*arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) >= 2


def test_with_a_session_every_mistake_is_said_with_the_next_step(run, desk, folder):
    run("start", "--kata", "sdpa", "causal-mask", "--minutes", "30")
    for arguments, said in [
        (["start"], "Interview 1 (sdpa+causal_mask) still runs"),
        (["submit"], "You cannot submit in interview 1 now: it is in the briefing"),
        (["run"], "it is in the briefing"),
        (["ask", "99"], "'99' is not a question.\nAsk in your own words"),
        (["answer", "1", "1"], "You cannot answer in interview 1 now"),
        (["show"], "has no review yet"),
        (["export", "1"], "has no review yet"),
        (["delete", "1", "--yes"], "has not ended"),
        (["pause"], "You cannot pause"),
    ]:
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert said in done.stderr
    run("next")
    assert "cannot pause" in run("pause").stderr
    file = desk.store.active().file
    file.unlink()
    assert "is gone" in run("run").stderr
    file.mkdir()
    assert "is a folder" in run("run").stderr
    assert "is a folder, so the newest saved version is handed in" in run("submit").stdout
    assert "You cannot submit in interview 1 now: this stage was submitted" in run("submit").stderr
    run("next")
    run("submit")
    run("next")
    session = desk.store.active()
    place = next(place for place, one in enumerate(session.follow_ups, 1) if one["kind"] == "numeric")
    assert "'abc' is not a number" in run("answer", str(place), "abc").stderr
    assert "There is no question '9'" in run("answer", "9", "1").stderr
    assert "has no answer yet" in run("next").stderr
    assert run("answer", str(place), "-5").returncode == 0
    assert run("end", lines="n\n").returncode == 130
    assert run("end", "--yes").returncode == 0
    assert "You cannot" not in run("start", "--track", "warm-up").stderr


def test_an_ended_session_is_shown_and_forgotten(run, desk):
    run("start", "--track", "warm-up")
    run("end", "--yes")

    assert "ended early" in run("list").stdout
    assert "Interview 1: warm-up" in run("show", "1").stdout
    assert run("delete", "1", lines="n\n").returncode == 130
    assert "is deleted" in run("delete", "1", "--yes").stdout
    assert "No interviews yet" in run("list").stdout


def test_past_interviews_stay_closed_while_a_mock_one_runs(run):
    run("start", "--track", "warm-up")
    run("end", "--yes")
    run("start", "--track", "warm-up")

    assert "You cannot see past interviews while mock interview 2 (warm-up) runs" in run("show", "1").stderr
    assert run("export", "1").returncode == 2


@pytest.mark.parametrize("place", ["file.txt", "file.txt/deep/er", "link"])
def test_a_session_whose_files_could_not_be_written_does_not_start(run, desk, folder, place):
    (folder / "file.txt").touch()
    (folder / "link").symlink_to("nowhere")
    done = run("start", "--kata", "sdpa", "--dir", place)

    assert done.returncode == 2
    assert f"Your files would go to '{place}', but '{place.split('/')[0]}' is no folder." in done.stderr
    assert "--dir DIR" in done.stderr
    assert desk.store.sessions() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_session_does_not_start_in_a_folder_of_somebody_else(run, desk, folder):
    folder.chmod(0o555)
    done = run("start", "--kata", "sdpa")
    folder.chmod(0o755)

    assert done.returncode == 2
    assert "but nothing can be written in '.'" in done.stderr
    assert desk.store.sessions() == []


def test_a_review_says_what_comes_next_once_and_when_it_began_to_the_minute(run, desk):
    run("start", "--track", "warm-up")
    run("next")
    desk.store.active().file.write_bytes(RIGHT)
    run("submit")
    run("next")
    shown = run("next", "--skip").stdout

    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d, ", shown, re.MULTILINE), shown
    assert "core properties hold" in shown
    assert "\n\n  PASS " in shown
    assert "attn-kata solution" not in shown  # the report's own next step, cut off where it was wrapped
    assert "attn-kata interview next    closes this session" in shown

    into = run("export", "--output", ".", "--format", "markdown")
    assert into.returncode == 2
    assert "'.' is a folder.\nName a file in it: --output interview-1.md" in into.stderr


def test_the_prompt_can_be_left_wherever_it_asks(run, desk):
    """At the end of a stage `quit` once began the questions, and in the review it closed the interview."""
    assert "There is no" not in run("--no-room", lines="q\n").stderr
    run("start", "--track", "warm-up")
    states = []
    for lines in ("quit\n", "\nquit\n", "submit\nquit\n", "\nquit\n"):
        assert "To come back" in run("--no-room", lines=lines).stderr
        states.append(desk.store.active().state)
    run("next", "--skip")
    run("--no-room", lines="q\n")

    assert states == ["briefing", "coding", "submitted", "follow_up"]
    assert desk.store.active().state == "review"


def test_the_tracks_stand_in_columns(run):
    shown = run("--no-room", lines="q\n").stdout
    places = [line.index(" min  ") for line in shown.splitlines() if re.match(r"  \S.* min  ", line)]

    assert len(places) > 3
    assert len(set(places)) == 1, shown


def test_what_a_pause_is_ended_by(run, desk):
    """By whoever says so; who only comes back at the prompt finds it as it was left."""
    run("start", "--track", "warm-up", "--coached")
    run("next")
    run("pause")

    assert "[paused] resume, run, check, submit" in run("--no-room", lines="quit\n").stdout
    assert desk.store.active().paused
    assert "paused" not in run("resume").stdout
    assert not desk.store.active().paused

    run("submit")
    run("next")
    shown = run("next", "--skip").stdout
    assert re.search(r"paused\n.*came back, still paused, after \d+ seconds?\n.*the clock runs again, after", shown), (
        shown
    )
    assert " UTC, " in run("export", "--format", "markdown").stdout.splitlines()[2]


def test_no_commands_help_is_cut_off(run):
    assert "..." not in run("--help").stdout.split("Commands:")[1]


def test_help_names_every_command(run):
    done = run("--help")

    for name in (
        "start",
        "status",
        "run",
        "submit",
        "next",
        "resume",
        "end",
        "show",
        "list",
        "export",
        "delete",
        "host",
        "sit",
        "ask",
        "answer",
    ):
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE), name


# At the prompt ------------------------------------------------------------------------------------


def test_a_first_time_user_gets_from_nothing_to_typing_code(home, folder, desk):
    child = pexpect.spawn(
        sys.executable,
        ["-m", "attn_kata", "interview", "--no-room"],
        cwd=str(folder),
        encoding="utf-8",
        timeout=20,
        dimensions=(40, 80),
        env={**os.environ, "ATTN_KATA_HOME": str(home), "TERM": "xterm"},
    )
    child.expect("Plan, or the name of a kata")
    child.sendline("warmup")
    child.expect("Did you mean 'warm-up'")
    child.sendline("warm-up")
    child.expect("Minutes")
    child.sendline("")
    child.expect("Coached")
    child.sendline("")
    child.expect("A question in your own words, or Enter to start the clock")
    child.sendline("are the inputs always 4d?")
    child.expect("-> ")
    child.sendline("")
    child.expect(r"Your file: (\S+)")
    file = folder / child.match[1]
    assert file.exists()
    child.expect(r"\[14:\d\d\] run, check, submit")
    file.write_bytes(RIGHT)  # the person's own editor
    for _ in range(50):
        if desk.store.source(1, desk.store.active().kept[0]) == RIGHT:
            break
        time.sleep(0.2)
    assert desk.store.source(1, desk.store.active().kept[0]) == RIGHT  # kept while the prompt waits
    child.sendline("nonsense")
    child.expect("'nonsense' is not a command here")
    child.sendline("quit")
    child.expect("To come back: attn-kata interview")
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 0


def test_the_whole_session_through_a_pipe(run, desk, folder):
    run("start", "--track", "warm-up")
    run("next")
    desk.store.active().file.write_bytes(RIGHT)
    session = desk.store.active()
    drawn = follow_ups.draw("sdpa", content.of_kata("sdpa").follow_ups, seed=session.seed, count=follow_ups.ALONE)
    answers = []
    for one in drawn:
        answers += ["no number", str(one["answer"])] if one["kind"] == "numeric" else [str(one.get("answer", "words"))]
        answers += ["1, 2"] if one["kind"] == "free" else []
    lines = ["check", "submit", "", *answers, "", ""]
    done = run(lines="\n".join(lines) + "\n")

    assert "The example: out is as expected." in done.stdout
    assert "is not a number" in done.stderr
    assert "Overall: " in done.stdout
    assert desk.store.load(session.id).state == "closed"
