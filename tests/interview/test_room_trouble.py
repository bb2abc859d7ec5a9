"""What may go wrong around the room: another editor, another room, a full disk, a kill: nothing is lost, and it is said."""

from __future__ import annotations

import os
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.widgets import OptionList

from attn_kata.errors import UsageError
from attn_kata.interview import control
from attn_kata.interview.draft import Draft
from attn_kata.interview.room import dialogs, screens
from attn_kata.interview.room.between import BetweenScreen
from attn_kata.interview.room.choosing import ChoosingScreen
from attn_kata.interview.room.coding import CodingScreen
from attn_kata.interview.room.presence import CRASHED, SHARED, Presence
from attn_kata.interview.room.screens import Clock, Words

from .conftest import RIGHT
from .pilot import NARROW, TINY, WIDE, at, shows, until, write


def test_what_another_editor_saves_is_loaded(room, begin):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        session.file.write_bytes(RIGHT)
        await room.look()
        await until(pilot, lambda: room.screen.editor.source == RIGHT)
        assert room.screen.saved() == "saved"

    at(room, NARROW, test)


@pytest.mark.parametrize(
    ("key", "in_file", "copies"), [("m", b"# mine", []), ("t", b"# theirs", []), ("b", b"# mine", [b"# theirs"])]
)
def test_a_conflict_is_asked_about_and_nothing_is_lost(room, begin, desk, key, in_file, copies):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        write(room, b"# mine")
        session.file.write_bytes(b"# theirs")
        await room.look()
        await shows(pilot, dialogs.Choice)
        await pilot.press("escape")
        await shows(pilot, dialogs.Choice)  # there is no way around it
        await pilot.press(key)
        await shows(pilot, CodingScreen)
        await until(pilot, lambda: not room.screen.unsaved)
        assert room.screen.editor.source == in_file

    at(room, NARROW, test)

    assert session.file.read_bytes() == in_file
    assert [path.read_bytes() for path in session.file.parent.glob("sdpa.file-*.py")] == copies
    every = {desk.store.source(1, event.source) for event in desk.store.load(1).events if event.source}
    assert {b"# mine", b"# theirs"} <= every


def test_what_was_typed_before_the_machine_slept_past_the_end_lies_beside_the_file(room, begin, desk, clock):
    session = begin(minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        write(room, b"# typed, never saved")
        clock.goes(minutes=300)
        await room.look()
        await shows(pilot, BetweenScreen)

    at(room, NARROW, test)
    assert b"# typed" not in session.file.read_bytes()
    assert (session.file.parent / "sdpa.room-1.py").read_bytes() == b"# typed, never saved"


def test_another_terminal_hands_it_in(room, begin, desk):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        control.submit(desk, session.id, RIGHT)
        await room.look()
        await shows(pilot, BetweenScreen)

    at(room, NARROW, test)


def test_a_file_that_is_gone_is_said_and_written_again(room, begin):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        source = session.file.read_bytes()
        session.file.unlink()
        await room.look()
        await room.look()
        assert len(room._notifications) == 1, "said once, not at every look"
        assert "│ NOT SAVED: 'sdpa.py' is gone" in str(room.screen.query_one(Clock).visual)
        assert "is gone" in room.screen.trouble()
        await pilot.press("ctrl+s")
        await until(pilot, session.file.exists)
        assert session.file.read_bytes() == source

    at(room, NARROW, test)


def test_where_nothing_can_be_kept_its_words_are_shown_and_the_text_stays(room, begin, home):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        write(room, b"# mine")
        (home / "interview.db").write_bytes(b"no database" * 1000)
        await pilot.press("ctrl+s")
        await room.look()
        await until(pilot, lambda: "was damaged" in " ".join(one.message for one in room._notifications))
        assert room.screen.editor.source == b"# mine"

    at(room, NARROW, test)
    assert session.file.read_bytes() == b"# mine"


@contextmanager
def small_files(most: int = 4096) -> Iterator[None]:
    """As on a full disk: nothing that this process writes grows beyond that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before, sys.dont_write_bytecode = (
        sys.dont_write_bytecode,
        True,
    )  # Python would keep half a .pyc, and trip over it later
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


LONG = b"# " + b"much " * 2000 + b"last words\n"


def test_a_full_disk_is_said_once_and_the_text_is_given_back_on_leaving(room, begin, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # full, too
    session = begin()
    before = session.file.read_bytes()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        with small_files():
            write(room, LONG)
            for _ in range(3):
                await room.look()
            assert "left of 40:00 │ NOT SAVED: 'sdpa.py' cannot be written" in clock_of(room)
            assert len(room._notifications) == 1
            await pilot.press("ctrl+q")
            await shows(pilot, dialogs.Choice)
            await pilot.press("l")
            await until(pilot, lambda: room._exit)

    at(room, NARROW, test)
    assert session.file.read_bytes() == before
    assert [path.name for path in session.file.parent.iterdir()] == ["sdpa.py"]
    assert LONG.decode() in room.return_value


def test_a_full_disk_that_has_room_again_takes_everything(room, begin, desk):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        with small_files():
            write(room, LONG)
            await room.look()
            assert "NOT SAVED" in clock_of(room)
        room.screen._typed -= 2
        await room.look()
        assert "│ saved │" in clock_of(room)

    at(room, NARROW, test)
    assert session.file.read_bytes() == LONG
    assert desk.store.source(session.id, desk.store.load(session.id).kept[0]) == LONG


def test_a_session_that_cannot_keep_a_version_is_not_the_file(room, begin, desk):
    """The database is larger than the limit, the file is not."""
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        with small_files():
            write(room, RIGHT)
            await pilot.pause()
            room.screen._typed -= 2
            room.screen._changed -= 6
            for _ in range(3):
                await room.look()
            assert "│ NOT KEPT: Your text is in its file, but not in the session" in clock_of(room)
            assert len(room._notifications) == 1
            assert session.file.read_bytes() == RIGHT
        await room.look()
        assert "│ saved │" in clock_of(room)

    at(room, NARROW, test)
    assert desk.store.source(session.id, desk.store.load(session.id).kept[0]) == RIGHT


def test_where_the_folder_cannot_be_written_the_text_is_among_the_temporary_files(room, begin, tmp_path, monkeypatch):
    begin()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def refuse(*given: object) -> None:
        raise UsageError("'sdpa.py' cannot be written: no.")

    monkeypatch.setattr(Draft, "write", refuse)
    monkeypatch.setattr(Draft, "aside", refuse)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        write(room, RIGHT)
        room.go("")

    at(room, NARROW, test)
    found = re.search(r"The text that was not saved in 'sdpa.py' is in '(.*)'", room.return_value)
    assert found
    assert Path(found[1]).read_bytes() == RIGHT


def test_the_time_ends_where_nothing_can_be_written_and_the_text_is_given_back(room, begin, clock):
    begin(minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        with small_files():
            write(room, LONG)
            await room.look()
        clock.goes(minutes=300)
        with small_files(200_000):
            await room.look()
            await shows(pilot, BetweenScreen)
        room.go("")

    at(room, NARROW, test)
    assert "sdpa.room-1.py" in room.return_value


def test_a_second_room_and_a_killed_one_are_said(room, begin, home):
    begin()
    other = Presence(home)
    assert other.arrive(1) == ""

    async def second(pilot):
        await shows(pilot, CodingScreen)
        assert SHARED in [note.message for note in room._notifications]

    at(room, NARROW, second)
    assert Presence(home).arrive(1) == SHARED, "the second room has not taken the place of the first"

    handle, path = other._held
    os.close(handle)  # as the kernel does when it is killed
    after = Presence(home)
    assert after.arrive(1) == CRASHED
    after.leave()
    assert not path.exists()
    assert Presence(home).arrive(1) == ""


def test_what_another_terminal_kept_of_the_clock_is_said_here_too(room, begin, desk, clock):
    session = begin(minutes=40)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        clock.goes(minutes=20)
        assert control.tick(desk, session.id).news  # a host looks once a second
        await room.look()
        await room.look()
        assert [note.message for note in room._notifications] == ["Half of the time is over. 20 minutes left."]

    at(room, NARROW, test)


def test_a_room_that_is_left_is_not_taken_for_a_killed_one(room, begin, home):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        assert Presence(home).arrive(1) == SHARED

    at(room, NARROW, test)
    assert Presence(home).arrive(1) == ""


def test_a_word_that_is_being_typed_answers_no_conflict(room, begin, monkeypatch):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        monkeypatch.setattr(screens, "PAUSE", 30.0)
        write(room, b"# mine")
        session.file.write_bytes(b"# theirs")
        await room.look()
        await shows(pilot, dialogs.Choice)
        await pilot.press(*"transpose, batch", "enter", "m")
        assert isinstance(room.screen, dialogs.Choice)
        assert (room.screen.query_one(OptionList).has_focus, session.file.read_bytes()) == (False, b"# theirs")
        room.screen._typing._last -= 60
        await pilot.press("down")
        assert room.screen.query_one(OptionList).has_focus
        await pilot.press("m")
        await shows(pilot, CodingScreen)
        await until(pilot, lambda: session.file.read_bytes() == b"# mine")

    at(room, NARROW, test)


def test_a_line_that_is_being_typed_does_not_go_past_the_end_of_the_time(room, begin, clock, monkeypatch):
    begin(minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        monkeypatch.setattr(screens, "PAUSE", 30.0)
        clock.goes(minutes=31)
        await room.look()
        await shows(pilot, BetweenScreen)
        await pilot.press("x", "enter", "enter")
        assert room.session.state == "time_up"
        room.screen._typing._last -= 60
        await pilot.press("enter")
        await until(pilot, lambda: room.session.state == "follow_up")

    at(room, NARROW, test)


@pytest.mark.parametrize("key", ["ctrl+g", "ctrl+q"])
def test_a_question_can_be_read_and_answered_on_the_smallest_terminal(room, begin, key):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        await pilot.press(key)
        await shows(pilot, dialogs.Choice)
        await pilot.pause(0.1)
        question, choices = room.screen.query_one(Words), room.screen.query_one(OptionList)
        assert question.size.height >= 1
        assert choices.size.height >= 2
        assert question.size.width >= 16
        await pilot.press("down", "enter")
        await until(pilot, lambda: not isinstance(room.screen, dialogs.Choice))

    at(room, TINY, test)


def test_a_terminal_that_shrinks_and_grows_again_shows_the_same(room, begin):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        await pilot.press("ctrl+home", *"abc")
        for width, height in (NARROW, TINY, (1, 1), NARROW, TINY, WIDE):
            await pilot.resize_terminal(width, height)
            await pilot.pause(0.1)
            await pilot.press("x")
        editor = room.screen.editor
        assert editor.text.startswith("abcxxxxxx")
        assert editor.scroll_offset == (0, 0)
        assert room.screen.query_one("#output").display
        await pilot.press("f1")
        await shows(pilot, dialogs.Help)
        await pilot.resize_terminal(*NARROW)
        await pilot.press("escape")
        await shows(pilot, CodingScreen)
        await pilot.pause(0.1)
        assert not room.screen.query_one("#output").display

    at(room, WIDE, test)


def clock_of(room) -> str:
    return str(room.screen.query_one(Clock).visual)


def test_a_damaged_database_is_said_on_the_first_screen(room, home):
    """And not only when the room is left: why else is the interview gone?"""
    home.mkdir()
    (home / "interview.db").write_bytes(b"no database" * 1000)

    async def test(pilot):
        await shows(pilot, ChoosingScreen)
        await until(pilot, lambda: room._notifications)
        assert "was damaged" in next(iter(room._notifications)).message

    at(room, NARROW, test)
