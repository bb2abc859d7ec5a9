"""What stands on the terminal while a command waits, and what is said meanwhile."""

from __future__ import annotations

import io
import time

import pytest

from attn_kata.cli import output

pyte = pytest.importorskip("pyte")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_warning_stands_above_what_is_waited_for_and_nothing_of_that_stays(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    screen = pyte.Screen(60, 4)
    stream = pyte.Stream(screen)

    def lines() -> list[str]:
        screen.reset()
        stream.feed(terminal.getvalue().replace("\n", "\r\n"))
        return [line.rstrip() for line in screen.display]

    with output.waiting("Grading …", after=0.0):
        while "Grading" not in terminal.getvalue():
            time.sleep(0.01)
        output.warn("Only a part is graded.")
        meanwhile = lines()
    output.warn("Done.")

    assert meanwhile == ["Only a part is graded.", "Grading …", "", ""]
    assert lines() == ["Only a part is graded.", "Done.", "", ""]
