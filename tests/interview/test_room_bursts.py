"""Keys that arrive together: a dialog takes the first one that answers it, and the room goes on."""

from __future__ import annotations

import pytest

from attn_kata.interview.room import dialogs
from attn_kata.interview.room.between import BetweenScreen
from attn_kata.interview.room.coding import CodingScreen
from attn_kata.interview.room.questions import QuestionsScreen

from .pilot import NARROW, at, burst, shows, until, write


@pytest.mark.parametrize("opens", ["f1", "ctrl+g", "ctrl+q", "ctrl+b"])
def test_a_dialog_that_is_closed_three_times_closes_nothing_else(room, begin, opens):
    begin()

    async def test(pilot):
        coding = await shows(pilot, CodingScreen)
        burst(room, opens)
        await until(pilot, lambda: isinstance(room.screen, dialogs.Dialog) and room.screen.is_mounted)
        burst(room, "escape", "escape", "escape")
        await shows(pilot, CodingScreen)
        assert room.screen is coding

    at(room, NARROW, test)


@pytest.mark.parametrize(("keys", "kept"), [("mmm", b"# mine"), ("tbm", b"# theirs")])
def test_a_conflict_is_settled_by_the_first_key(room, begin, keys, kept):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        write(room, b"# mine")
        session.file.write_bytes(b"# theirs")
        await room.look()
        await shows(pilot, dialogs.Choice)
        burst(room, *keys)
        await shows(pilot, CodingScreen)
        await until(pilot, lambda: not room.screen.unsaved)

    at(room, NARROW, test)
    assert session.file.read_bytes() == kept


@pytest.mark.parametrize("key", ["y", "enter"])
def test_handing_in_three_times_goes_one_step(room, begin, key):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        burst(room, "ctrl+g")
        await shows(pilot, dialogs.Choice)
        burst(room, key, key, key)
        await shows(pilot, BetweenScreen)
        burst(room, "enter", "enter", "enter")
        await shows(pilot, QuestionsScreen)

    at(room, NARROW, test)
    assert room.session.state == "follow_up"


def test_one_question_is_asked(room, begin):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        burst(room, "ctrl+b")
        await shows(pilot, dialogs.Ask)
        room.screen.query_one("#ask").value = "are the inputs always 4d?"
        burst(room, "enter", "enter", "enter")
        await until(pilot, lambda: room.session.asked)
        await shows(pilot, CodingScreen)

    at(room, NARROW, test)
    assert len(room.session.asked) == 1


def test_the_first_key_says_how_to_leave(room, begin, desk):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        burst(room, "ctrl+q")
        await shows(pilot, dialogs.Choice)
        burst(room, "l", "e", "s")
        await until(pilot, lambda: room._exit)

    at(room, NARROW, test)
    assert room.return_code == 0
    assert desk.store.active().state == "coding"
