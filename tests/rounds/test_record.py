"""How rounds went is kept beside the history, and practised as cards of their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from attn_kata import practice
from attn_kata.history import History
from attn_kata.rounds.record import Record
from attn_kata.rounds.spoiled import Bug, Spoiled

CODE = Spoiled(
    kata="sdpa",
    seed=3,
    style="plain",
    base="y\n",
    source="x\n",
    bugs=(Bug(mistake="scale.missing", lines=(1,), wrong=("x",), right=("y",)),),
)


def test_the_last_hunt_of_a_file_comes_back_whole(tmp_path: Path):
    record = Record(pytest.fail, tmp_path)
    assert record.hunt_at(tmp_path / "a.py", "sdpa") is None
    for one in (CODE, replace(CODE, seed=4)):
        assert record.hunt_begun(one, tmp_path / "a.py", 20)

    found = record.hunt_at(tmp_path / "a.py", "sdpa")
    assert (found.spoiled, found.minutes) == (replace(CODE, seed=4), 20)
    assert record.hunt_at(tmp_path / "b.py", "sdpa") is None
    assert record.hunt_at(tmp_path / "a.py", "mha") is None


def test_every_round_is_practised_for_itself_and_what_went_wrong_comes_first(tmp_path: Path):
    record = Record(pytest.fail, tmp_path)
    record.went("sdpa", "hunt", [])
    record.went("sdpa", "napkin", ["How many bytes?"])
    record.went("mha", "review", [])
    now = datetime.now(timezone.utc) + timedelta(days=1)
    suggested = practice.what_next(History(pytest.fail, tmp_path), rounds=record.results(), now=now)

    assert (suggested[0].kata, suggested[0].round) == ("sdpa", "napkin")
    assert suggested[0].failing == ("How many bytes?",)
    assert {(one.kata, one.round) for one in suggested[1:]} == {("sdpa", "hunt"), ("mha", "review")}


def test_a_record_that_cannot_be_used_warns_once_and_only_who_wants_to_keep_something(tmp_path: Path):
    (tmp_path / "home").touch()
    said: list[str] = []
    record = Record(said.append, tmp_path / "home")
    assert (record.results(), record.hunt_at(tmp_path / "a.py", "sdpa"), said) == ([], None, [])

    record = Record(said.append, tmp_path / "home")
    record.went("sdpa", "hunt", [])
    assert record.hunt_begun(CODE, tmp_path / "a.py", None) is False
    assert len(said) == 1
    assert said[0].startswith("Nothing is kept of this round: ")


@pytest.mark.parametrize("damage", ["not a database", "UPDATE hunt SET spoiled = '{}'", "UPDATE hunt SET at = 'soon'"])
def test_a_damaged_record_is_set_aside(tmp_path: Path, damage: str):
    import sqlite3

    said: list[str] = []
    Record(said.append, tmp_path).hunt_begun(CODE, tmp_path / "a.py", None)
    file = tmp_path / "rounds.db"
    if damage.startswith("UPDATE"):
        with sqlite3.connect(file) as db:
            db.execute(damage)
    else:
        file.write_text(damage)

    assert Record(said.append, tmp_path).hunt_at(tmp_path / "a.py", "sdpa") is None
    assert len(said) == 1
    assert "It is kept as 'rounds.damaged-1.db'" in said[0]
