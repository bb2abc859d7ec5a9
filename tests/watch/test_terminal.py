"""What is written to the terminal, as a terminal shows it."""

from __future__ import annotations

import pyte

from attn_kata.watch.terminal import _ENTER, Terminal


def test_a_line_as_wide_as_the_screen_keeps_its_last_letter_and_a_shorter_one_leaves_none(monkeypatch):
    screen = pyte.Screen(20, 4)
    stream = pyte.Stream(screen)
    terminal = Terminal()
    monkeypatch.setattr(terminal, "_write", stream.feed)
    stream.feed(_ENTER)

    terminal.show(["0123456789abcdefghij", "second"])
    assert screen.display[0] == "0123456789abcdefghij"
    terminal.show(["short", "second"])
    assert screen.display[0].rstrip() == "short"
    assert screen.display[1].rstrip() == "second"
