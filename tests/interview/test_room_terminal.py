"""The room in a real terminal with a real engine: keys in, the screen read back."""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import time
from contextlib import closing

import pexpect
import pytest

from attn_kata.interview import moments, timeline
from attn_kata.interview.control import Desk
from attn_kata.interview.store import Store

from .conftest import RIGHT
from .terminal import SLOW, Terminal

# Python runs this in every process of the room before anything else: its wall clock is set while it runs.
SET_CLOCK = """
import os, time
now = time.time
time.time = lambda: now() + float(open(os.environ["CLOCK_SET_BY"]).read())
"""


@pytest.fixture
def terminal(folder, home, ready):
    opened: list[Terminal] = []

    def open_(**named) -> Terminal:
        opened.append(Terminal(folder, home, **{"ready": ready, **named}))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def test_from_the_first_key_to_a_run_of_another_editors_code_and_back(terminal, folder, desk):
    one = terminal(ready=None)  # with everything as a person starts it
    one.begins_coding()
    one.child.send("# typed ")
    one.shows("# typed #")
    one.quiet(3)  # it saves by itself
    file = folder / "interview-1" / "sdpa.py"
    assert file.read_text().startswith("# typed #")
    assert "│ saved" in one.text

    file.write_bytes(RIGHT)
    one.shows("def scaled_dot_product_attention(q, k, v):")
    one.child.send("\x0c")
    one.shows("Shapes: right.")

    one.child.send("\x11")
    one.shows("Stay")
    one.quiet(0.1)  # a key right behind the one that opens a dialog is a burst, and dropped
    one.child.send("l")
    assert one.ends() == 0
    assert b"To come back: attn-kata interview" in one.raw
    assert desk.store.active().state == "coding"

    again = terminal()
    again.shows("def scaled_dot_product_attention(q, k, v):")


@pytest.mark.parametrize(
    ("rows", "columns", "running"), [(40, 130, "Output (F4): running"), (24, 80, "F4 output: running")]
)
def test_keys_are_shown_while_a_grading_runs(terminal, folder, rows, columns, running):
    """Before it is over; how soon is measured by `python -m tests.bench.room`."""
    one = terminal(rows=rows, columns=columns)
    one.begins_coding()
    (folder / "interview-1" / "sdpa.py").write_bytes(SLOW)
    one.shows("sum(range(300_000))")
    one.child.send("\x0c")  # the check in the engine; ^r only runs the file
    one.shows(running)
    one.child.send("\x1bOR")  # F3: a narrow terminal shows the output while it runs
    if columns == 80:
        one.shows("[F3 editor]")  # a key that comes before the editor has the focus would be lost
    one.shows("sum(range(300_000))")
    for code in range(0x100, 0x100 + 30):
        one.milliseconds(chr(code))  # waits until it is seen

    assert running in one.text, "the grading was over before the last key"


def test_the_terminals_own_size_counts_and_not_the_one_that_was_exported(terminal):
    """Both layouts differ in width: an exported COLUMNS=80 once drew the narrow one on a wide screen, for good."""
    one = terminal(rows=40, columns=130, COLUMNS="80", LINES="24")
    one.begins_coding()
    one.shows("Output (F4)")
    one.shows("Task (F2)")
    assert "Hand in" in one.text.splitlines()[39]
    one.is_resized(24, 80)
    one.shows("[F3 editor]")
    assert "Hand in" in one.text.splitlines()[23]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_room_that_is_told_to_stop_saves_first(terminal, folder, number):
    one = terminal()
    one.begins_coding()
    one.child.send("# last words ")
    one.shows("# last words")
    one.child.kill(number)
    one.ends()

    assert one.child.exitstatus == 128 + number
    assert (folder / "interview-1" / "sdpa.py").read_text().startswith("# last words ")


def test_where_the_last_words_lie_is_said_the_next_time(terminal, folder, tmp_path):
    """A terminal that was closed shows nothing any more, least of all where the room put what it could not save."""
    (elsewhere := tmp_path / "tmp").mkdir()
    one = terminal(TMPDIR=str(elsewhere))
    one.begins_coding()
    (folder / "interview-1").rename(folder / "away")
    (folder / "interview-1").touch()
    one.child.send("# last words ")
    one.shows("NOT SAVED")
    one.child.kill(signal.SIGHUP)
    one.ends()
    (folder / "interview-1").unlink()
    (folder / "away").rename(folder / "interview-1")
    (kept,) = elsewhere.glob("*sdpa*.py")

    assert kept.read_text().startswith("# last words ")
    again = terminal(
        TMPDIR=str(elsewhere), columns=400
    )  # the path fits into one line, so nothing stands between its parts
    again.shows("Text that a room could not save")
    again.child.send("\x1bOS")  # F4: a notice goes away
    again.shows("Text that a room could not save in your file is in")
    again.shows(kept.name)


def test_a_room_that_is_killed_in_the_middle_of_a_word_loses_a_second_at_most_and_says_so(terminal, folder):
    one = terminal()
    one.begins_coding()
    one.child.send("# ")
    sent, end = "# ", time.monotonic() + 4
    times = [time.monotonic()] * 2
    while time.monotonic() < end:
        one.child.send("x")
        sent += "x"
        times.append(time.monotonic())
        one.quiet(0.02)
    one.child.kill(signal.SIGKILL)
    killed = time.monotonic()
    one.ends()
    file = folder / "interview-1" / "sdpa.py"
    kept = len(file.read_text().split("# attn-kata")[0])
    lost = times[kept:]

    assert file.read_text().startswith(sent[:kept])
    assert not lost or killed - lost[0] < 1.5, (
        f"{len(lost)} of {len(sent)} keys, the first {killed - lost[0]:.2f} s old"
    )
    assert [path.name for path in file.parent.iterdir()] == ["sdpa.py"]

    again = terminal()
    again.shows("The last room was killed.")
    again.child.send("\x1b[1;5H")
    again.shows(sent[: min(kept, 60)])


@pytest.mark.skipif(shutil.which("vim") is None, reason="no vim here; on Debian: apt-get install vim-tiny")
def test_vim_and_the_room_write_the_same_file(terminal, folder, home):
    one = terminal()
    one.begins_coding()
    file = folder / "interview-1" / "sdpa.py"
    vim = pexpect.spawn("vim", ["-u", "NONE", "-i", "NONE", "-N", str(file)], dimensions=(24, 80), timeout=10)
    try:
        vim.expect("attn-kata: sdpa")
        vim.send("O# from vim\x1b:w\r")
        one.shows("# from vim")
        one.child.send("# from the room\r")
        one.shows("# from the room")
        one.quiet(2.5)
        assert file.read_text().startswith("# from the room\n# from vim\n")

        vim.send("O# not seen\x1b:w\r")
        vim.expect("has been changed since reading it")
        vim.send("y\r")  # over what the room wrote
        one.shows("# not seen")
        one.quiet(1.5)
    finally:
        vim.close(force=True)

    every = kept_versions(home)
    assert any(source.startswith(b"# from the room\n# from vim\n") for source in every), "what vim wrote over is kept"
    assert any(b"# not seen\n# from vim\n" in source for source in every)


def kept_versions(home):
    """Every source that the session has, in no order."""
    with closing(sqlite3.connect(home / "interview.db")) as db:
        return [bytes(source) for (source,) in db.execute("SELECT source FROM snapshot")]


def test_keys_that_arrive_at_once_answer_a_dialog_once(terminal, desk):
    one = terminal()
    one.begins_coding()
    one.child.send("\x11")
    one.shows("Stay")
    one.quiet(0.1)  # a person reads first
    one.child.send("sss")
    while "Stay" in one.text:
        one.quiet(0.1)
    one.child.send("\x11")
    one.shows("Stay")
    one.quiet(0.1)
    one.child.send("lll")

    assert one.ends() == 0
    assert b"Traceback" not in one.raw
    assert desk.store.active().state == "coding"


def test_a_clock_that_is_set_in_the_middle_takes_and_gives_no_minute(terminal, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text(SET_CLOCK)
    by = tmp_path / "by"

    def set_to(seconds: int) -> None:
        (tmp_path / "next").write_text(str(seconds))
        (tmp_path / "next").replace(by)  # never half of it

    set_to(0)
    one = terminal(PYTHONPATH=str(tmp_path / "own"), CLOCK_SET_BY=str(by))
    one.begins_coding()
    real = Desk(store=Store(str), clock=moments.SystemClock())
    before = real.store.active()
    left = before.left(moments.read(real.clock))

    set_to(-10800)
    one.shows("clock was set back")
    set_to(10800)
    one.shows("clock was set forward")
    one.child.send("# still here")
    one.shows("# still here")
    one.shows("│ saved │")
    assert "The time is up" not in one.text
    shown = re.search(r"(\d\d):(\d\d) left of 55:00", one.text)
    after = real.store.active()
    now = after.left(moments.read(real.clock))

    assert shown is not None
    assert now <= int(shown[1]) * 60 + int(shown[2]) + 1 <= left + 1
    assert [round(event.data["by"] / 3600) for event in after.events if event.kind == "clock_set"] == [-3, 6]
    assert after.events[2].data == before.events[2].data, "the deadline stays"
    told = [at for _, at, _ in timeline.told(after)]
    assert told == sorted(told)
