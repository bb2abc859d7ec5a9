"""A command on a terminal of its own: keys in, the screen read back."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pexpect
import pyte

from ..ready import Templates

SLOW = b"import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end:\n    sum(range(300_000))\n"


class Terminal:
    """`attn-kata interview` with whatever else is given, and what its terminal shows. `ready` has engines that have loaded."""

    def __init__(
        self,
        folder: Path,
        home: Path,
        *more: str,
        ready: Templates | None = None,
        rows: int = 24,
        columns: int = 80,
        **variables: str,
    ) -> None:
        # A worker of pytest-xdist has COLUMNS, which would override the terminal's own size.
        ours = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment = {**ours, "ATTN_KATA_HOME": str(home), "TERM": "xterm-256color", **variables}
        command = [sys.executable, "-m", "attn_kata", "interview", *more]
        if ready is not None:
            command = ready.face("interview", *more)
        self.child = pexpect.spawn(
            command[0], command[1:], cwd=str(folder), env=environment, dimensions=(rows, columns), timeout=30
        )
        self.child.delaybeforesend = None  # it would wait 50 ms before every key
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._unread = b""
        self.raw = b""

    @property
    def text(self) -> str:
        """What is on the screen."""
        if self._unread:
            self._stream.feed(self._unread)
            self._unread = b""
        return "\n".join(self._screen.display)

    def shows(self, words: str, seconds: float = 40) -> None:
        """Wait until the words are on the screen."""
        end = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < end, f"never came: {words}\n{self.text}"
            self.read()

    def ends(self, seconds: float = 20) -> int | None:
        """Wait for the end; the exit code."""
        end = time.monotonic() + seconds
        while self.read():
            assert time.monotonic() < end, self.text
        self.child.wait()
        return self.child.exitstatus

    def close(self) -> None:
        """End the command. A loaded machine may take longer for that than pexpect waits."""
        try:
            self.child.close(force=True)
        except pexpect.ExceptionPexpect:  # it was killed, but is not gone yet
            self.child.wait()

    def quiet(self, seconds: float) -> None:
        """Only read, for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()

    def is_resized(self, rows: int, columns: int) -> None:
        """The person pulls at the corner of the window."""
        self.text  # noqa: B018 (what came before it belongs to the old size)
        self._screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def burst(self, *keys: str, count: int = 20) -> None:
        """`count` keys that arrive together: these again and again.

        In one write: on a loaded machine, this process may pause between two, and then they are two bursts.
        """
        self.child.send("".join(keys[place % len(keys)] for place in range(count)))

    def milliseconds(self, key: str) -> float:
        """From a key to its character, which must be new to the screen."""
        begun, seen = time.perf_counter(), len(self.raw)
        self.child.send(key)
        while key.encode() not in self.raw[seen:]:
            assert time.perf_counter() < begun + 5, self.text
            self.read()
        return (time.perf_counter() - begun) * 1000

    def begins_coding(self) -> None:
        """From choosing, past the briefing, to the clock."""
        self.shows("To the briefing")
        self.child.send("\r")
        self.shows("Start the clock")
        self.child.send("\x07")
        self.shows("Hand in")
        self.shows("left of 55:00")
        self.shows("raise NotImplementedError")
        self.child.send("\x1b[1;5H")  # Ctrl+Home
        self.shows("# attn-kata: sdpa")

    def read(self) -> bool:
        """Take what has come; False at the end."""
        try:
            read = self.child.read_nonblocking(65536, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += read
        self._unread += read
        return True
