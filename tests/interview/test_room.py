"""The room by its keys: briefing to review with a clock turned by hand and an engine that is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, OptionList
from textual.widgets._footer import FooterKey

from attn_kata import contract
from attn_kata.interview import control, plans, runs
from attn_kata.interview.room import dialogs, texts
from attn_kata.interview.room.app import Room
from attn_kata.interview.room.between import BetweenScreen
from attn_kata.interview.room.briefing import BriefingScreen
from attn_kata.interview.room.choosing import ChoosingScreen
from attn_kata.interview.room.coding import CodingScreen
from attn_kata.interview.room.editor import Editor
from attn_kata.interview.room.questions import QuestionsScreen
from attn_kata.interview.room.reviewing import ReviewScreen
from attn_kata.interview.room.screens import Clock, Pane, Words
from attn_kata.interview.room.ticks import Tick, Ticks

from .conftest import RIGHT
from .pilot import NARROW, WIDE, at, shows, text_of, until, write


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_from_choosing_to_the_review_by_keys_alone(room, desk, engine, folder, size):
    async def test(pilot):
        await shows(pilot, ChoosingScreen)
        choices = room.screen.query_one(OptionList)
        choices.highlighted = choices.get_option_index("plan warm-up")
        await pilot.press("enter")

        await shows(pilot, BriefingScreen)
        await pilot.press(*"always 4d", "enter")
        await until(pilot, lambda: room.session.asked and "→" in text_of(room.screen.query_one("#answers", Pane)))
        await pilot.press("ctrl+g")

        await shows(pilot, CodingScreen)
        assert isinstance(room.focused, Editor)
        assert "→" in text_of(room.screen.query_one("#task", Pane))
        assert "15:00 left of 15:00" in str(room.screen.query_one(Clock).visual)
        write(room, RIGHT)
        await pilot.press("ctrl+l")
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
                down, number = ["down"] * (question["answer"] - 1), [str(question["answer"])]
                await pilot.press("9", *(down if size == NARROW else number), "enter")
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
    assert room.return_value == "Interview 1 is closed. To see it: attn-kata interview show 1"
    assert [given["right"] for given in session.answers.values()].count(True) == 2
    assert list(session.ticks.values()) == [(1,)]


def test_typing_is_in_the_file_at_every_look_and_a_version_of_the_session_when_it_pauses(room, begin, desk):
    session = begin()

    def kept() -> bytes:
        return desk.store.source(session.id, desk.store.load(session.id).kept[0])

    async def test(pilot):
        await shows(pilot, CodingScreen)
        await pilot.press("ctrl+home", "#")
        assert not session.file.read_bytes().startswith(b"##")
        await room.look()
        assert session.file.read_bytes().startswith(b"##")
        assert room.screen.saved() == "saving …"
        assert not kept().startswith(b"##")
        room.screen._typed -= 2
        await room.look()
        assert kept().startswith(b"##")
        assert room.screen.saved() == "saved"

    at(room, NARROW, test)


def test_who_types_without_a_pause_has_versions_too(room, begin, desk):
    session = begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        await pilot.press("ctrl+home", "#")
        await room.look()
        room.screen._changed -= 6
        await pilot.press("#")
        await room.look()
        assert desk.store.source(session.id, desk.store.load(session.id).kept[0]).startswith(b"###")

    at(room, NARROW, test)


def test_time_up_takes_the_text_of_the_room(room, begin, desk, clock):
    begin(minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        clock.goes(minutes=15)
        await room.look()
        await until(pilot, lambda: len(room._notifications) > 0)
        assert [note.message for note in room._notifications] == ["Half of the time is over. 15 minutes left."]
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
    assert "To come back: attn-kata interview" in room.return_value
    assert "The clock still runs. Left: 30:00" in room.return_value

    clock.goes(minutes=10)
    again = Room(desk=desk, history=history, engine=engine, look_seconds=0)

    async def comes_back(pilot):
        await shows(pilot, CodingScreen)
        assert again.screen.editor.source == b"# half of it"
        assert "20:00 left of 30:00" in str(again.screen.query_one(Clock).visual)

    at(again, NARROW, comes_back)


def test_a_coached_session_pauses_and_a_mock_one_has_no_such_key(room, begin, clock):
    begin(mode="coached", minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: room.session.paused and room.screen.editor.read_only)
        clock.goes(minutes=20)
        await until(pilot, lambda: "Go on" in footer(room))
        assert "Pause" not in footer(room)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: not room.session.paused)
        assert room.left() == pytest.approx(1800, abs=1)
        await until(pilot, lambda: not room.screen.editor.read_only)
        await until(pilot, lambda: "Pause" in footer(room))

    at(room, NARROW, test)


def test_a_pause_stays_until_somebody_says_so(room, begin, desk, clock):
    """Opening the room again once let the clock go on."""
    session = begin(mode="coached", minutes=30)
    control.pause(desk, session.id)
    clock.goes(minutes=20)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        clock.goes(minutes=20)
        await room.look()
        assert room.session.paused
        assert room.left() == pytest.approx(1800, abs=1)
        assert room.screen.editor.read_only
        assert "paused │ Ctrl+P restarts the clock" in str(room.screen.query_one(Clock).content)
        await until(pilot, lambda: "Go on" in footer(room))
        control.resume(desk, session.id)  # in another terminal
        await room.look()
        await until(pilot, lambda: not room.screen.editor.read_only and "Pause" in footer(room))

    at(room, NARROW, test)


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_what_a_run_says_is_as_wide_as_its_pane(room, begin, monkeypatch, size):
    """On a narrow terminal the pane is not shown yet when the run begins, and has no width."""
    begin(mode="coached")
    widths = []
    real = runs.run
    monkeypatch.setattr(runs, "run", lambda *given, **named: widths.append(named["width"]) or real(*given, **named))

    async def test(pilot):
        screen = await shows(pilot, CodingScreen)
        await pilot.press("ctrl+l")
        output = screen.query_one("#output", Pane)
        await until(pilot, lambda: "gradients" in text_of(output))
        await pilot.pause()

        assert widths == [output.query_one(Words).size.width]
        assert widths[0] > 70

    at(room, size, test)


def test_what_was_wrong_with_an_answer_does_not_stand_over_the_next_question(room, begin, desk):
    session = begin()
    control.submit(desk, session.id, RIGHT)
    session = control.advance(desk, session.id)
    first = session.follow_ups[0]
    assert first["kind"] == "numeric"

    async def test(pilot):
        await shows(pilot, QuestionsScreen)
        await pilot.press(*"banana", "enter")
        await until(pilot, lambda: toasts(room))
        assert "'banana' is not a number" in toasts(room)[0]
        room.screen.query_one(Input).value = "12"
        await pilot.press("enter")
        await until(pilot, lambda: "Question 2" in str(room.screen.query_one("#asked", Words).visual))
        await until(pilot, lambda: not toasts(room))

    at(room, NARROW, test)


def test_choosing_reads_no_more_of_a_kata_than_it_shows(room, monkeypatch):
    def refuse(file: Path) -> None:
        raise AssertionError(f"a contract was read: {file}")

    monkeypatch.setattr(contract, "load", refuse)

    async def test(pilot):
        await shows(pilot, ChoosingScreen)

    at(room, NARROW, test)


MARKUP = "[bold]x[/] [@click=app.quit]y[/] [nonsense"


def test_no_text_that_comes_from_outside_is_read_as_markup(room, desk, clock, engine, folder, monkeypatch):
    """Names of folders, what an attempt prints, answers: Textual's own titles and notices would read them as markup."""
    engine.prints = f"{MARKUP} \x1b[31mred\x1b[2J\x07"
    here = folder / MARKUP.replace("/", "!")
    plan = plans.with_minutes(plans.of_katas(("sdpa",)), 30)
    session = control.start(desk, plan, mode="coached", folder=here, seed=7)
    control.advance(desk, session.id)
    name = f"{MARKUP.replace('/', '!')}/sdpa.py"

    async def test(pilot):
        screen = await shows(pilot, CodingScreen)
        assert name in text_of(screen.query_one("#output"))
        (here / "sdpa.py").write_bytes(b"other = 1\n")
        await room.look()
        await until(pilot, lambda: toasts(room))
        assert toasts(room)[-1] == f"Loaded from the disk: {name}"
        assert not any(one.markup for one in room._notifications)
        await pilot.press("ctrl+l")
        await until(pilot, lambda: MARKUP in text_of(screen.query_one("#output")))
        control.submit(desk, session.id, RIGHT)
        control.advance(desk, session.id)
        asked = desk.store.load(session.id).follow_ups
        free = next(place for place, one in enumerate(asked, 1) if one["kind"] == "free")
        control.answer(desk, session.id, free, f"{MARKUP} \x1b[31mred")
        await room.look()
        questions = await shows(pilot, QuestionsScreen)
        for _ in range(free - 1):
            await pilot.press("ctrl+n")
        await until(pilot, lambda: f"Yours: {MARKUP} red" in str(questions.query_one("#asked", Words).visual))
        control.advance(desk, session.id)
        await room.look()
        review = await shows(pilot, ReviewScreen)
        pane = review.query_one("#review", Pane)
        await until(pilot, lambda: pane.border_subtitle)
        await until(pilot, lambda: MARKUP in text_of(pane))
        shown = "\n".join("".join(segment.text for segment in strip) for strip in review._compositor.render_strips())
        assert MARKUP.replace("/", "!")[:40] in shown.splitlines()[-2]
        assert "\x1b" not in shown
        assert "\x07" not in shown

    at(room, WIDE, test)


def footer(room) -> str:
    return " ".join(key.description for key in room.screen.query(FooterKey))


def toasts(room) -> list[str]:
    return [one.message for one in room._notifications]


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


def test_what_shows_the_same_is_not_drawn_again(room, begin, monkeypatch):
    """Neither the keys at the bottom when the pane in front changes, nor the clock within a second."""
    begin()

    async def test(pilot):
        screen = await shows(pilot, CodingScreen)
        await until(pilot, lambda: len(screen.query(FooterKey)) > 3)
        keys, drawn = list(screen.query(FooterKey)), []
        monkeypatch.setattr(Clock, "update", lambda clock, line, **named: drawn.append(line))
        await pilot.press("f2", "f4", "f3")
        await pilot.pause(0.2)
        screen.show_clock()

        assert list(screen.query(FooterKey)) == keys
        assert drawn == []

    at(room, NARROW, test)


def test_keys_are_shown_while_a_run_goes_on(room, begin, engine):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        engine.may.clear()
        await pilot.press("ctrl+l")
        await until(pilot, engine.begun.is_set)
        tabs = room.screen.query_one("#tabs", Words)
        assert "[F4 output: running …]" in str(tabs.visual)
        await pilot.press("f3", "ctrl+home", "a", "b")
        assert room.screen.editor.text.startswith("ab")
        assert "[F3 editor]   F4 output: running …" in str(tabs.visual)
        engine.may.set()
        await until(pilot, lambda: "Shapes" in text_of(room.screen.query_one("#output", Pane)))
        await until(pilot, lambda: "F4 output: run at" in str(tabs.visual))

    at(room, NARROW, test)


def test_the_time_ends_while_a_run_goes_on(room, begin, engine, clock):
    begin(minutes=30)

    async def test(pilot):
        await shows(pilot, CodingScreen)
        engine.may.clear()
        await pilot.press("ctrl+l")
        await until(pilot, engine.begun.is_set)
        clock.goes(minutes=31)
        await room.look()
        await shows(pilot, BetweenScreen)
        engine.may.set()
        await pilot.pause(0.3)
        assert not room._exit
        assert isinstance(room.screen, BetweenScreen)

    at(room, NARROW, test)
    assert not room.return_code


def test_a_run_that_ends_after_the_code_was_handed_in_says_nothing(room, begin, desk, engine):
    """It said that one cannot run now, to somebody who had not asked for it."""
    session = begin()

    async def test(pilot):
        screen = await shows(pilot, CodingScreen)
        engine.may.clear()
        await pilot.press("ctrl+l")
        await until(pilot, engine.begun.is_set)
        control.submit(desk, session.id, RIGHT)
        await room.look()
        await shows(pilot, BetweenScreen)
        engine.may.set()
        await until(pilot, lambda: not screen._run_on)
        await pilot.pause()
        assert [notice.message for notice in room._notifications] == []

    at(room, NARROW, test)


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_verdict_of_a_run_is_seen_below_long_prints(room, begin, engine, size):
    begin()
    engine.prints = "printed\n" * 100

    async def test(pilot):
        screen = await shows(pilot, CodingScreen)
        await pilot.press("ctrl+l")
        output = screen.query_one("#output", Pane)
        await until(pilot, lambda: "Shapes: right." in text_of(output))
        await until(pilot, lambda: output.scroll_offset.y == output.max_scroll_y > 0)

    at(room, size, test)


def test_no_line_of_the_help_is_too_long_for_its_dialog():
    assert max(map(len, texts.HELP.splitlines())) <= 64  # at 80 columns


def test_the_first_key_lands_where_there_is_something_to_write(room, begin):
    begin()

    async def test(pilot):
        await shows(pilot, CodingScreen)
        editor = room.screen.editor
        assert editor.selected_text.startswith("raise NotImplementedError(")
        await pilot.pause(0.1)
        row = editor.cursor_location[0]
        assert editor.scroll_offset.x == 0
        assert editor.scroll_offset.y <= row < editor.scroll_offset.y + editor.size.height
        await pilot.press(*"return v")
        assert editor.document.get_line(row) == "    return v"
        await pilot.press("ctrl+home")
        assert editor.cursor_location == (0, 0)

    at(room, NARROW, test)


def test_what_is_ticked_shows_without_a_colour(room):
    async def test(pilot):
        await shows(pilot, ChoosingScreen)
        tick = room.screen.query_one(Tick)
        assert "X" not in str(tick.render())
        tick.focus()
        await pilot.press("space")
        assert "▐X▌" in str(tick.render())

        await room.screen.mount(ticks := Ticks(("one", "two " * 30), id="points"))
        ticks.focus()
        await pilot.press("down", "space")
        await pilot.pause()
        lines = [ticks.render_line(row).text for row in range(3)]
        assert [line[:6] for line in lines] == ["[ ] 1.", "[X] 2.", "two tw"]  # nothing is cut off
        assert ticks.ticked == {2}

    at(room, NARROW, test)


def test_a_page_of_the_task_turns_wherever_the_cursor_is(room):
    async def test(pilot):
        await shows(pilot, ChoosingScreen)
        await pilot.press("enter")
        await shows(pilot, BriefingScreen)
        task = room.screen.query_one("#task", Pane)
        assert isinstance(room.focused, Input)
        await pilot.press("pagedown")
        await pilot.pause()
        assert task.scroll_offset.y > 0
        await pilot.press("pageup")
        await pilot.pause()
        assert task.scroll_offset.y == 0

    at(room, NARROW, test)


def test_torch_stays_out_of_the_room() -> None:
    import subprocess
    import sys

    asked = "import sys, attn_kata.interview.room.app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], cwd=Path(__file__).parent, check=False).returncode == 0


def test_panes_are_widened_and_long_lines_wrapped(room, begin):
    begin()

    async def test(pilot):
        screen = await shows(pilot, CodingScreen)
        task, editor = screen.query_one("#task"), screen.query_one(Editor)
        before = task.size.width, editor.size.width
        await pilot.press("f9")
        await until(pilot, lambda: editor.size.width > before[1])
        await pilot.press("alt+w")
        await until(pilot, lambda: task.size.width > before[0])
        await pilot.press("f9", "f9")
        await until(pilot, lambda: (task.size.width, editor.size.width) == before)
        await pilot.press("f10")
        await pilot.pause()
        assert editor.soft_wrap
        assert editor.source == room.screen.draft.base  # wrapping changes no text

    at(room, WIDE, test)


SMALL = (40, 12)


def keys_of(room) -> str:
    """What stands in the lines of keys that are on the screen."""
    found = []
    for key in room.screen.query("FooterKey"):
        assert key.region.right <= room.size.width
        assert key.region.bottom <= room.size.height
        found.append(f"{key.key_display} {key.description}")
    return "  ".join(found)


def test_no_key_is_cut_off_on_a_small_screen_nor_after_a_resize_behind_a_dialog(room):
    async def test(pilot):
        await shows(pilot, ChoosingScreen)
        await until(pilot, lambda: "^q Leave" in keys_of(room))
        for box in room.screen.query(Tick):
            assert box.region.width >= len(str(box.label)) + 4
            assert box.region.bottom <= room.size.height
        await pilot.press("home")
        await until(pilot, lambda: "Phone screen: one task" in str(room.screen.query_one("#plan", Words).visual))
        await pilot.press("enter")
        await shows(pilot, BriefingScreen)
        await until(pilot, lambda: "^g Start the clock" in keys_of(room))
        await pilot.press("ctrl+g")
        coding = await shows(pilot, CodingScreen)
        await until(pilot, lambda: "^g Hand in" in keys_of(room))
        assert len({key.region.y for key in room.screen.query("FooterKey")}) == 2
        await pilot.press("f1")
        await shows(pilot, dialogs.Help)
        await pilot.resize_terminal(*NARROW)
        await pilot.press("escape")
        await until(pilot, lambda: room.screen is coding)
        await until(pilot, lambda: len({key.region.y for key in room.screen.query("FooterKey")}) == 1)
        assert "^q Leave" in keys_of(room)

    at(room, SMALL, test)


def test_a_screen_never_has_a_scroll_bar_of_its_own(room):
    """One that came in one resize of five took two columns, and stayed."""

    async def test(pilot):
        await shows(pilot, ChoosingScreen)
        for size in (SMALL, NARROW, (60, 16), WIDE, SMALL):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert not room.screen.show_vertical_scrollbar
            assert room.screen.size == size

    at(room, NARROW, test)
