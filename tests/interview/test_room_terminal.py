"""The room in a real terminal with a real engine: keys in, the screen read back."""

from __future__ import annotations

import signal

import pytest

from .conftest import RIGHT
from .terminal import SLOW, Terminal


@pytest.fixture
def terminal(folder, home):
    opened: list[Terminal] = []

    def open_(**named) -> Terminal:
        opened.append(Terminal(folder, home, **named))
        return opened[-1]

    yield open_
    for one in opened:
        one.child.close(force=True)


def test_from_the_first_key_to_a_run_of_another_editors_code_and_back(terminal, folder, desk):
    one = terminal()
    one.begins_coding()
    one.child.send("# typed ")
    one.shows("# typed #")
    one.quiet(3)  # it saves by itself
    file = folder / "interview-1" / "sdpa.py"
    assert file.read_text().startswith("# typed #")
    assert "│ saved" in one.text

    file.write_bytes(RIGHT)
    one.shows("def scaled_dot_product_attention(q, k, v):")
    one.child.send("\x12")
    one.shows("Shapes: right.")

    one.child.send("\x11")
    one.shows("Stay")
    one.child.send("l")
    assert one.ends() == 0
    assert b"Back to it: attn-kata interview" in one.raw
    assert desk.store.active().state == "coding"

    again = terminal()
    again.shows("def scaled_dot_product_attention(q, k, v):")


@pytest.mark.parametrize(
    ("rows", "columns", "running"), [(40, 130, "Output (F4): running"), (24, 80, "F4 output: running")]
)
def test_keys_are_shown_at_once_while_a_grading_runs(terminal, folder, rows, columns, running):
    """Half of them within 50 ms; `python -m tests.bench.room` shows how they are spread."""
    one = terminal(rows=rows, columns=columns)
    one.begins_coding()
    (folder / "interview-1" / "sdpa.py").write_bytes(SLOW)
    one.shows("sum(range(300_000))")
    one.child.send("\x12")
    one.shows(running)
    one.child.send("\x1bOR")  # F3: a narrow terminal shows the output while it runs
    one.shows("sum(range(300_000))")
    took = []
    for code in range(0x100, 0x100 + 30):
        one.quiet(0.03)
        took.append(one.milliseconds(chr(code)))

    assert running in one.text, "the grading was over before the last key"
    assert sorted(took)[len(took) // 2] < 50, took
    one.shows(running.replace("running", "run at"))


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
