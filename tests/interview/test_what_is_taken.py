"""At the end the file on the disk is taken; whatever became of it, no work is lost and no time is won."""

from __future__ import annotations

import os
import shutil

import pytest

from attn_kata.interview import actions, control

from .conftest import RIGHT


def written(session, clock, source: bytes, *, minutes_ago: float = 0.0) -> None:
    session.file.write_bytes(source)
    os.utime(session.file, (clock.wall() - minutes_ago * 60,) * 2)


def at_the_end(desk, clock, session):
    clock.goes(minutes=60)
    ticked = control.tick(desk, session.id)
    event = ticked.session.events[-1]
    return desk.store.source(session.id, ticked.session.finals[0]), event.data["how"], ticked.news[0]


def test_a_file_that_was_never_run_is_taken(desk, clock, begin):
    session = begin()
    written(session, clock, RIGHT)

    assert at_the_end(desk, clock, session)[:2] == (RIGHT, "on the disk")


def test_a_file_that_vanished_gives_way_to_the_newest_version_kept(desk, clock, begin):
    session = begin()
    control.save(desk, session.id, RIGHT)
    session.file.unlink()
    source, how, said = at_the_end(desk, clock, session)

    assert (source, how) == (RIGHT, "not on the disk")
    assert "is gone: the newest version that was kept is taken" in said


def test_a_file_that_became_a_folder_gives_way_to_the_newest_version_kept(desk, clock, begin):
    session = begin()
    control.save(desk, session.id, RIGHT)
    session.file.unlink()
    session.file.mkdir()
    source, how, said = at_the_end(desk, clock, session)

    assert (source, how) == (RIGHT, "not on the disk")
    assert "is a folder: the newest version" in said


def test_a_whole_folder_that_vanished_gives_way_as_well(desk, clock, begin):
    session = begin()
    control.save(desk, session.id, RIGHT)
    shutil.rmtree(session.folder)

    assert at_the_end(desk, clock, session)[:2] == (RIGHT, "not on the disk")


def test_what_was_written_after_the_end_is_not_taken(desk, clock, begin):
    session = begin()
    control.save(desk, session.id, RIGHT)
    clock.goes(minutes=50)
    written(session, clock, b"late = True\n")
    source, how, said = at_the_end(desk, clock, session)

    assert (source, how) == (RIGHT, "changed after the end")
    assert "Your file changed after the end" in said


def test_a_file_saved_late_and_never_kept_before_is_taken_and_marked(desk, clock, begin):
    session = begin()
    clock.goes(minutes=50)
    written(session, clock, RIGHT)

    assert at_the_end(desk, clock, session)[:2] == (RIGHT, "late")


def test_a_file_that_was_only_touched_is_taken_as_it_is(desk, clock, begin):
    session = begin()
    written(session, clock, RIGHT)
    control.observe(desk, session.id)
    clock.goes(minutes=50)
    written(session, clock, RIGHT)

    assert at_the_end(desk, clock, session)[:2] == (RIGHT, "on the disk")


def test_submitting_without_a_file_hands_in_the_newest_version(desk, begin):
    session = begin()
    control.save(desk, session.id, RIGHT)
    session.file.unlink()
    told = actions.submit(desk, desk.store.load(session.id))

    assert "is gone, so the newest saved version is handed in" in told
    assert desk.store.source(session.id, desk.store.load(session.id).finals[0]) == RIGHT


def test_coming_back_writes_a_lost_file_again(desk, begin):
    session = begin()
    control.save(desk, session.id, RIGHT)
    shutil.rmtree(session.folder)
    told = actions.resume(desk, desk.store.load(session.id))

    assert "is gone, so the newest saved version is restored." in told
    assert session.file.read_bytes() == RIGHT


def test_a_stub_never_lands_on_a_file(desk, tmp_path, begin):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "sdpa.py").write_bytes(b"mine")
    session = begin()

    assert session.file.name == "sdpa_2.py"
    assert (tmp_path / "work" / "sdpa.py").read_bytes() == b"mine"


@pytest.mark.parametrize("source", [b"", b"\x00\xff" * 10, "π = 3".encode("utf-16"), b"x" * 900_000])
def test_any_bytes_are_kept_as_they_are(desk, begin, source):
    session = begin()
    control.save(desk, session.id, source)

    assert desk.store.source(session.id, desk.store.load(session.id).kept[0]) == source


def test_a_version_is_kept_once(desk, begin):
    session = begin()
    for _ in range(3):
        control.save(desk, session.id, RIGHT)

    assert [event.kind for event in desk.store.load(session.id).events].count("saved") == 1
