"""A session made of rounds: files that grow, numbers, a talk; and the sessions that were kept before there were rounds."""

from __future__ import annotations

import json
import sqlite3
from contextlib import nullcontext
from pathlib import Path

import jsonschema
import pytest

from attn_kata.errors import UsageError
from attn_kata.interview import control, pages, review, runs, scorecard
from attn_kata.interview.plans import Plan
from attn_kata.interview.rounds import TALK, Round

from .conftest import RIGHT
from .engine_double import FakeEngine

SCHEMA = json.loads(Path(pages.__file__).with_name("review.schema.json").read_text("utf-8"))
GROWS = (
    Round(kind="write", kata="sdpa", minutes=10),
    Round(kind="grow", kata="padding_mask", minutes=15),
    Round(kind="napkin", kata="mha", minutes=5),
    Round(kind="grow", kata="mha", minutes=20),
    TALK,
)


@pytest.fixture
def grows(desk, tmp_path):
    """A session that is coding in its first round."""
    plan = Plan(name="grows", title="", about="", rounds=GROWS)
    session = control.start(desk, plan, mode="mock", folder=tmp_path / "work", seed=3)
    return control.advance(desk, session.id)


def test_a_file_grows_and_keeps_what_was_written(desk, grows, clock):
    control.submit(desk, grows.id, RIGHT)
    grows.file.write_bytes(RIGHT)
    second = control.advance(desk, grows.id)
    grown = second.file.read_bytes()

    assert second.file == grows.file
    assert grown.startswith(RIGHT.rstrip())
    assert b"# ---- Part 2: Padding mask" in grown
    assert b"def padded_attention(" in grown
    assert grown.count(b"import torch\n") == 1
    assert b"True = a real" not in grown  # silent, as in every briefing
    compile(grown, "grown", "exec")

    control.submit(desk, grows.id, grown)
    clock.goes(minutes=1)
    napkin = control.advance(desk, grows.id)

    assert (napkin.state, napkin.stage, napkin.clock_runs) == ("follow_up", 2, True)
    assert {one["kind"] for one in napkin.follow_ups} == {"numeric"}
    control.answer(desk, grows.id, 1, str(napkin.follow_ups[0]["answer"]))

    third = control.advance(desk, grows.id)

    assert (third.state, third.stage, third.file) == ("coding", 3, grows.file)
    assert third.file.read_bytes().startswith(grown.rstrip())
    with pytest.raises(UsageError):
        control.answer(desk, grows.id, 2, "1")  # its round is over
    control.submit(desk, grows.id, third.file.read_bytes())
    talk = control.advance(desk, grows.id)

    assert (talk.state, talk.clock_runs) == ("follow_up", False)
    assert {talk.follow_ups[place - 1]["kata"] for place in talk.places} == {"sdpa", "padding_mask", "mha"}
    control.advance(desk, grows.id)
    engine = FakeEngine()
    review.grade(desk.store, desk.store.load(grows.id), engine)
    reviewed = review.gather(desk.store, desk.store.load(grows.id))
    card = scorecard.score(reviewed)
    body = pages.body(reviewed, card, ())
    jsonschema.validate(body, SCHEMA)
    correctness = next(one for one in card.dimensions if one.name == "Correctness")

    assert [part.kata for part in reviewed.taken[-1].earlier] == ["sdpa", "padding_mask"]
    assert "sdpa, asked again with mha: 1 of 4 core properties; no longer: float32, gradients, values" in [
        *correctness.evidence
    ]
    assert "sdpa, then grow padding_mask, then napkin mha" in pages.as_terminal(body)
    assert pages.as_html(body)
    assert pages.as_markdown(body)


@pytest.mark.parametrize("trouble", ["gone", "empty", "folder", "edited", "killed"])
def test_a_file_that_is_in_trouble_between_two_rounds_grows_all_the_same(desk, grows, trouble):
    control.submit(desk, grows.id, RIGHT)
    file = grows.file
    file.write_bytes(RIGHT)
    if trouble == "gone":
        file.unlink()
    elif trouble == "empty":
        file.write_bytes(b"\n")
    elif trouble == "folder":
        file.unlink()
        file.mkdir()
    elif trouble == "edited":
        file.write_bytes(b"# a note\n" + RIGHT)
    elif trouble == "killed":  # after the part was appended, before the session said so
        from attn_kata.interview import growing

        growing.write(desk.store.load(grows.id), 1, handed_in=RIGHT)
    grown = control.advance(desk, grows.id)
    text = grown.file.read_bytes()

    assert (grown.file == file) == (trouble != "folder")
    assert text.count(RIGHT.rstrip()) == 1
    assert text.count(b"# ---- Part 2") == 1
    assert text.startswith(b"# a note") == (trouble == "edited")
    assert desk.store.source(grown.id, grown.kept[1]) == text


def test_a_coached_check_asks_the_earlier_parts_again(desk, tmp_path):
    plan = Plan(name="grows", title="", about="", rounds=GROWS)
    session = control.start(desk, plan, mode="coached", folder=tmp_path / "work", seed=3)
    session = control.advance(desk, session.id)
    engine = FakeEngine()

    def check(session) -> tuple[str, int]:
        return runs.run(desk, session, lambda: nullcontext(engine), width=80, color=False)

    session.file.write_bytes(RIGHT)
    assert "asked again" not in check(session)[0]
    control.submit(desk, session.id, RIGHT)
    session = control.advance(desk, session.id)
    engine.graded.clear()
    told, code = check(session)

    assert "sdpa, asked again with padding_mask: 1 of 4 core properties; no longer:" in told
    assert code == 1
    assert engine.graded == [session.file.read_bytes()] * 2
    kept = desk.store.load(session.id).kept[1]
    assert {(0, kept), (1, kept)} <= set(desk.store.reports(session.id))  # the review need not ask again


def test_a_derivation_is_answered_on_the_clock_and_ticked(desk, tmp_path):
    rounds = (Round(kata="rope", minutes=10), Round(kind="derive", kata="linear_attention", minutes=10), TALK)
    plan = Plan(name="derives", title="", about="", rounds=rounds)
    session = control.start(desk, plan, mode="mock", folder=tmp_path / "work", seed=3)
    session = control.advance(desk, session.id)
    control.submit(desk, session.id, session.file.read_bytes())
    session = control.advance(desk, session.id)

    assert (session.state, session.clock_runs) == ("follow_up", True)
    assert [one["kind"] for one in session.follow_ups] == ["free", "free"]
    assert any("T² D" in one["ask"] for one in session.follow_ups)
    control.answer(desk, session.id, 1, "products are associative")
    control.tick_points(desk, session.id, 1, (1, 2))
    talk = control.advance(desk, session.id)

    derived = {one["ask"] for one in session.follow_ups}
    assert not derived & {talk.follow_ups[place - 1]["ask"] for place in talk.places}  # nothing is asked twice
    session = control.advance(desk, session.id)
    review.grade(desk.store, session, FakeEngine())
    reviewed = review.gather(desk.store, session)
    card = scorecard.score(reviewed)
    body = pages.body(reviewed, card, ())
    jsonschema.validate(body, SCHEMA)
    assert "Question 1 (linear_attention): 2 of 5 points ticked" in pages.as_terminal(body)


def test_the_time_ends_in_numbers(desk, tmp_path, clock):
    plan = Plan(
        name="numbers",
        title="",
        about="",
        rounds=(Round(kind="napkin", kata="sdpa", minutes=10), Round(kata="sdpa", minutes=10), TALK),
    )
    session = control.start(desk, plan, mode="mock", folder=tmp_path / "work", seed=3)
    session = control.advance(desk, session.id)

    assert (session.state, session.stage, session.files) == ("follow_up", 0, {})
    control.answer(desk, session.id, 1, "12")
    clock.goes(minutes=21)
    with pytest.raises(UsageError, match="the time is up"):
        control.answer(desk, session.id, 2, "12")

    ended = desk.store.load(session.id)
    assert (ended.state, ended.finals) == ("time_up", {})
    talk = control.advance(desk, session.id)
    assert (talk.state, talk.stage) == ("follow_up", 2)
    assert control.advance(desk, session.id).state == "review"


def test_two_keys_are_not_two_steps(desk, grows):
    seen = control.submit(desk, grows.id, RIGHT)
    once = control.advance(desk, grows.id, seen=seen)
    twice = control.advance(desk, grows.id, seen=seen)

    assert once == twice
    with pytest.raises(UsageError, match=r"Stage 1 .* is over"):
        control.submit(desk, grows.id, RIGHT, stage=0)


def test_sessions_that_were_kept_before_there_were_rounds_open_and_go_on(desk, home, monkeypatch):
    home.mkdir()
    with sqlite3.connect(home / "interview.db") as db:
        db.executescript(Path(__file__).with_name("kept_before_rounds.sql").read_text("utf-8"))
        db.execute("PRAGMA user_version = 1")
    db.close()
    closed, timed_out, running = (desk.store.load(number) for number in (1, 2, 3))

    assert [(one.state, len(one.answers)) for one in (closed, timed_out, running)] == [
        ("closed", 3),
        ("abandoned", 1),
        ("follow_up", 1),
    ]
    assert [one.kind for one in timed_out.stages] == ["write", "write", "write", "talk"]
    assert running.places == (1, 2, 3, 4)
    assert not running.clock_runs
    for number in (1, 2):
        session = desk.store.load(number)
        review.grade(desk.store, session, FakeEngine())
        body = pages.body(review.gather(desk.store, session), None, ())
        jsonschema.validate(body, SCHEMA)
        assert pages.as_html(body)
    control.answer(desk, 3, 2, "1")
    assert control.advance(desk, 3).state == "review"
    assert control.advance(desk, 3).state == "closed"


def test_debugging_is_a_hunt_then_a_review(run, folder, desk):
    """The real commands and a real engine: the file is mended, the review marked, and the page says what was where."""
    (folder / "mine.toml").write_text(
        'title = "Mine"\nabout = "short"\nrounds = [\n'
        '  { round = "hunt", kata = "sdpa", minutes = 20 },\n  { round = "review", kata = "sdpa", minutes = 10 },\n]\n'
    )
    started = run("start", "--plan", "mine.toml")
    assert "Find them and mend them" in started.stdout, started.stderr
    session = desk.store.active()
    hunted, reviewed = session.spoiled[0], session.spoiled[1]
    assert not any(bug.mistake in started.stdout for bug in hunted.bugs)
    run("next")
    file = desk.store.active().file
    assert file.name == "hunt_sdpa.py"
    file.write_text(file.read_text().replace(hunted.source.strip("\n"), hunted.base.strip("\n")))
    assert "Next: Scaled dot-product attention, read a colleague's code" in run("submit").stdout
    assert f"   1  {reviewed.source.splitlines()[0]}" in run("next").stdout
    refused = run("answer", "1", "wrong somewhere")
    assert (refused.returncode, "does not begin with a line" in refused.stderr) == (2, True)
    marks = "; ".join(f"{bug.lines[0]} {bug.mistake}" for bug in reviewed.bugs)
    run("answer", "1", marks)
    shown = run("next").stdout

    assert "Bug hunt: you mended" in shown
    assert f"review of sdpa: {len(reviewed.bugs)} mistakes found, 0 missed, 0 marks at no mistake" in shown
    assert f"{reviewed.bugs[0].mistake}, was" in shown
