"""The room in a real terminal with a real engine: keys in, the screen read back."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pexpect
import pyte
import pytest

from .conftest import RIGHT


class Terminal:
    """The command on a terminal of its own, and what that shows."""

    def __init__(self, folder: Path, home: Path, *, rows: int = 24, columns: int = 80) -> None:
        environment = {**os.environ, "ATTN_KATA_HOME": str(home), "TERM": "xterm-256color"}
        command = ["-m", "attn_kata", "interview"]
        self.child = pexpect.spawn(
            sys.executable, command, cwd=str(folder), env=environment, dimensions=(rows, columns), timeout=30
        )
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""

    @property
    def text(self) -> str:
        return "\n".join(self._screen.display)

    def shows(self, words: str, seconds: float = 40) -> None:
        """Wait until the words are on the screen."""
        end = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < end, f"never came: {words}\n{self.text}"
            self._read()

    def ends(self, seconds: float = 20) -> int | None:
        """Wait for the end; the exit code."""
        end = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < end, self.text
        self.child.wait()
        return self.child.exitstatus

    def quiet(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read()

    def milliseconds(self, key: str) -> float:
        """From a key to its character."""
        begun, seen = time.perf_counter(), len(self.raw)
        self.child.send(key)
        while key.encode() not in self.raw[seen:]:
            assert time.perf_counter() < begun + 5, self.text
            self._read(parsed=False)
        return (time.perf_counter() - begun) * 1000

    def _read(self, *, parsed: bool = True) -> bool:
        try:
            read = self.child.read_nonblocking(65536, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += read
        if parsed:
            self._stream.feed(read)
        return True


@pytest.fixture
def terminal(folder, home):
    opened: list[Terminal] = []

    def open_(**named: int) -> Terminal:
        opened.append(Terminal(folder, home, **named))
        return opened[-1]

    yield open_
    for one in opened:
        one.child.close(force=True)


def begin_coding(one: Terminal) -> None:
    one.shows("To the briefing")
    one.child.send("\r")
    one.shows("Start the clock")
    one.child.send("\x07")
    one.shows("Hand in")
    one.shows("left of 55:00")


def test_from_the_first_key_to_a_run_of_another_editors_code_and_back(terminal, folder, desk):
    one = terminal()
    begin_coding(one)
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


@pytest.mark.xfail(strict=False, reason="open: the run was not seen to start on the screen; the cause is not known yet")
def test_keys_are_shown_at_once_while_a_grading_runs(terminal, folder):
    """The target is 50 ms; the limit here leaves room for a machine that does other things."""
    one = terminal(rows=40, columns=130)
    begin_coding(one)
    slow = b"import time\nfor _ in range(40):\n    sum(range(300_000))\n    time.sleep(0.05)\n"
    (folder / "interview-1" / "sdpa.py").write_bytes(slow)
    one.shows("sum(range(300_000))")
    one.child.send("\x12")
    one.shows("running")
    took = []
    for code in range(0x100, 0x100 + 30):
        one.quiet(0.03)
        took.append(one.milliseconds(chr(code)))

    assert sorted(took)[len(took) // 2] < 100, took


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_room_that_is_told_to_stop_saves_first(terminal, folder, number):
    one = terminal()
    begin_coding(one)
    one.child.send("# last words ")
    one.shows("# last words")
    one.child.kill(number)
    one.ends()

    assert one.child.exitstatus == 128 + number
    assert (folder / "interview-1" / "sdpa.py").read_text().startswith("# last words ")
