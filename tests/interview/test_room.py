"""The room by its keys: briefing to review with a clock turned by hand and an engine that is none."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from attn_kata.interview import control
from attn_kata.interview.room import dialogs
from attn_kata.interview.room.app import Room
from attn_kata.interview.room.between import BetweenScreen
from attn_kata.interview.room.briefing import BriefingScreen
from attn_kata.interview.room.choosing import ChoosingScreen
from attn_kata.interview.room.coding import CodingScreen
from attn_kata.interview.room.editor import Editor
from attn_kata.interview.room.questions import QuestionsScreen
from attn_kata.interview.room.reviewing import ReviewScreen
from attn_kata.interview.room.screens import Clock, Pane, Words

from .conftest import RIGHT
from .engine_double import FakeEngine

WIDE, NARROW = (130, 40), (80, 24)


class SlowEngine(FakeEngine):
    """Grades only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()
        self.may.set()
        self.begun = threading.Event()

    def grade(self, *args, **rest):
        self.begun.set()
        assert self.may.wait(20)
        return super().grade(*args, **rest)

    def cancel(self) -> None:
        self.may.set()


@pytest.fixture
def engine():
    return SlowEngine()


@pytest.fixture
def room(desk, history, engine, folder, monkeypatch):
    """A room whose clock only looks when a test says so."""
    monkeypatch.chdir(folder)
    return Room(desk=desk, history=history, engine=engine, look_seconds=0)


def at(room, size, test):
    """Run `test(pilot)` in the room on a screen of that size."""

    async def run() -> None:
        async with room.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: room.screen.is_mounted and len(room.screen_stack) > 1)
            await test(pilot)
        room.close()

    asyncio.run(run())


async def until(pilot, true, seconds=8.0) -> None:
    """Wait until `true()`."""
    for _ in range(int(seconds / 0.02)):
        await pilot.pause(0.02)
        if true():
            return
    raise AssertionError(f"never came: on {pilot.app.screen}")


async def shows(pilot, kind) -> object:
    await until(pilot, lambda: isinstance(pilot.app.screen, kind) and pilot.app.screen.is_mounted)
    await pilot.pause()
    return pilot.app.screen


def text_of(pane) -> str:
    return str(pane.query_one(Words).visual)


def write(room, source: bytes) -> None:
    """As if it had been typed: on top of what is there."""
    editor = room.screen.query_one(Editor)
    editor.replace(source.decode(), (0, 0), editor.document.end)


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_from_choosing_to_the_review_by_keys_alone(room, desk, engine, folder, size):
    async def test(pilot):
        await shows(pilot, ChoosingScreen)
        choices = room.screen.query_one(OptionList)
        choices.highlighted = choices.get_option_index("track warm-up")
        await pilot.press("enter")

        await shows(pilot, BriefingScreen)
        await pilot.press("down", "enter")
        await until(pilot, lambda: room.session.asked)
        assert "→" in str(room.screen.query_one("#questions", OptionList).get_option_at_index(1).prompt)
        await pilot.press("ctrl+g")

        await shows(pilot, CodingScreen)
        assert isinstance(room.focused, Editor)
        assert "→" in text_of(room.screen.query_one("#task", Pane))
        assert "15:00 left of 15:00" in str(room.screen.query_one(Clock).visual)
        write(room, RIGHT)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "Shapes" in text_of(room.screen.query_one("#output", Pane)))
        file = folder / "interview-1" / "sdpa.py"
        assert file.read_bytes() == RIGHT

        await pilot.press("ctrl+g")
        await shows(pilot, dialogs.Choice)
        await pilot.press("y")
        await shows(pilot, BetweenScreen)
        await pilot.press("enter")

        await shows(pilot, QuestionsScreen)
        for place in (1, 2, 3):
            await until(pilot, lambda place=place: room.screen._place == place)
            question = room.session.follow_ups[place - 1]
            await pilot.pause()
            if question["kind"] == "numeric":
                await pilot.press(*"a lot", "enter")
                await pilot.pause(0.1)
                assert place not in room.session.answers
                room.screen.query_one(Input).value = f"{question['answer']:g}"
                await pilot.press("enter")
            elif question["kind"] == "choice":
                await pilot.press(*["down"] * (question["answer"] - 1), "enter")
            else:
                await pilot.press(*"words", "ctrl+g")
                await until(pilot, lambda: bool(room.screen.query("#points")))
                await pilot.pause()
                await pilot.press("space", "ctrl+g")

        await shows(pilot, ReviewScreen)
        review = room.screen.query_one(Pane)
        await until(pilot, lambda: "review-1.html" in text_of(review))
        assert "Correctness" in text_of(review)
        assert "<html" in (file.parent / "review-1.html").read_text()
        await pilot.press("ctrl+g")
        await until(pilot, lambda: room._exit)

    at(room, size, test)

    session = desk.store.load(1)
    assert session.state == "closed"
    assert room.return_value == "Interview 1 is closed. It stays: attn-kata interview show 1"
    assert [given["right"] for given in session.answers.values()].count(True) == 2
    assert list(session.ticks.values()) == [(1,)]


def test_what_another_editor_saves_is_loaded(room, begin):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        session.file.write_bytes(RIGHT)
        await room.look()
        await until(pilot, lambda: room.screen.editor.source == RIGHT)
        assert room.screen.saved() == "saved"

    at(room, NARROW, test)


def test_typing_is_saved_after_a_second_of_quiet(room, begin, desk):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        await pilot.press("#")
        await room.look()
        assert not session.file.read_bytes().startswith(b"##")
        assert room.screen.saved() == "not saved yet"
        room.screen._typed -= 2
        await room.look()
        assert session.file.read_bytes().startswith(b"##")
        assert room.screen.saved() == "saved"

    at(room, NARROW, test)
    kept = desk.store.load(session.id)
    assert desk.store.source(session.id, kept.kept[0]).startswith(b"##")


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


def test_time_up_takes_the_text_of_the_room(room, begin, desk, clock):
    begin(minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        clock.goes(minutes=15)
        await room.look()
        await until(pilot, lambda: len(room._notifications) > 0)
        assert [note.message for note in room._notifications] == ["Half of the time is over: 15 minutes left."]
        clock.goes(minutes=14, seconds=57)
        write(room, RIGHT)
        await room.look()
        clock.goes(seconds=4)
        await room.look()
        await shows(pilot, BetweenScreen)
        assert "The time is up" in str(room.screen.query_one("#state").visual)

    at(room, NARROW, test)
    session = desk.store.load(1)
    assert desk.store.source(1, session.finals[0]) == RIGHT


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


def test_leaving_saves_and_coming_back_goes_on(room, begin, desk, history, engine, clock):
    session = begin(minutes=30)

    async def leaves(pilot):
        await shows(pilot, CodingScreen)
        write(room, b"# half of it")
        await pilot.press("ctrl+q")
        await shows(pilot, dialogs.Choice)
        await pilot.press("l")
        await until(pilot, lambda: room._exit)

    at(room, NARROW, leaves)
    assert session.file.read_bytes() == b"# half of it"
    assert "Back to it: attn-kata interview" in room.return_value
    assert "The clock runs on. Left: 30:00" in room.return_value

    clock.goes(minutes=10)
    again = Room(desk=desk, history=history, engine=engine, look_seconds=0)

    async def comes_back(pilot):
        await shows(pilot, CodingScreen)
        assert again.screen.editor.source == b"# half of it"
        assert "20:00 left of 30:00" in str(again.screen.query_one(Clock).visual)

    at(again, NARROW, comes_back)


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
        assert "is gone" in room.screen.saved()
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
        await until(pilot, lambda: room._notifications)
        assert room.screen.editor.source == b"# mine"

    at(room, NARROW, test)
    assert session.file.read_bytes() == b"# mine"


def test_a_coached_session_pauses_and_a_mock_one_has_no_such_key(room, begin, clock):
    begin(mode="coached", minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: room.session.paused and room.screen.editor.read_only)
        clock.goes(minutes=20)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: not room.session.paused)
        assert room.left() == pytest.approx(1800, abs=1)
        await until(pilot, lambda: not room.screen.editor.read_only)

    at(room, NARROW, test)


def test_help_and_the_panes_of_a_narrow_terminal(room, begin):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        panes = {name: room.screen.query_one(f"#{name}") for name in ("task", "editor", "output")}
        assert [name for name, pane in panes.items() if pane.display] == ["editor"]
        assert panes["editor"].size.height >= 19
        await pilot.press("f2")
        assert [name for name, pane in panes.items() if pane.display] == ["task"]
        await pilot.press("ctrl+t", "ctrl+t")
        assert [name for name, pane in panes.items() if pane.display] == ["output"]
        await pilot.press("f1")
        await shows(pilot, dialogs.Help)
        await pilot.press("escape")
        await pilot.resize_terminal(130, 40)
        await pilot.pause(0.1)
        assert all(pane.display for pane in panes.values())

    at(room, NARROW, test)


def test_keys_are_shown_while_a_run_goes_on(room, begin, engine):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        engine.may.clear()
        await pilot.press("ctrl+r")
        await until(pilot, engine.begun.is_set)
        await pilot.press("f3", "a", "b")
        assert room.screen.editor.text.startswith("ab")
        engine.may.set()
        await until(pilot, lambda: "Shapes" in text_of(room.screen.query_one("#output", Pane)))

    at(room, NARROW, test)


def test_torch_stays_out_of_the_room() -> None:
    import subprocess
    import sys

    asked = "import sys, attn_kata.interview.room.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], cwd=Path(__file__).parent, check=False).returncode == 0
