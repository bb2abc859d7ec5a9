"""The terminal during `watch`: its own screen, keys without Enter, and everything restored at the end.

The terminal keeps the old screen (`watch` uses the "alternate screen"), and it comes back however the command ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
from types import FrameType, TracebackType

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # alternate screen, no cursor, no wrapping at the right edge
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_NAMED = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1bOA": "up",
    "\x1bOB": "down",
}


class Terminal:
    """The screen and the keys. A context manager; `wake` may be called from any thread."""

    def __init__(self) -> None:
        self._mode: list[object] | None = None
        self._shown: list[str] = []
        self._before: dict[int, object] = {}
        self._reader, self._waker = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._waker, False)

    def __enter__(self) -> Terminal:
        self._enter()
        for name, handler in (("SIGWINCH", self._resized), ("SIGTSTP", self._stopped)):
            number = getattr(signal, name, None)
            if number is not None:
                self._before[number] = signal.signal(number, handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._leave()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        size = shutil.get_terminal_size((80, 24))
        return max(20, size.columns), max(6, size.lines)

    def wake(self) -> None:
        """End a `wait`."""
        with contextlib.suppress(OSError):  # the pipe is full: the wait ends anyway
            os.write(self._waker, b"x")

    def wait(self, seconds: float) -> str | None:
        """The next key, by its letter or name; None after `seconds` or a wake. Raises EOFError when the terminal is gone."""
        keyboard = sys.stdin.fileno()
        ready, _, _ = select.select([keyboard, self._reader], [], [], max(0.0, seconds))
        if self._reader in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 4096)
        if keyboard not in ready:
            return None
        typed = os.read(keyboard, 64)
        if not typed:
            raise EOFError
        text = typed.decode("utf-8", "replace")
        return _NAMED.get(text, text[0] if text[0] != "\x1b" else "escape")

    def show(self, lines: list[str]) -> None:
        """Show these lines; only changed lines are written."""
        parts = []
        for number, line in enumerate(lines):
            if number >= len(self._shown) or self._shown[number] != line:
                # Erase first: after a full line, the cursor stays on the last letter, and erasing would remove it.
                parts.append(f"\x1b[{number + 1};1H\x1b[K{line}\x1b[0m")
        if len(lines) < len(self._shown):
            parts.append(f"\x1b[{len(lines) + 1};1H\x1b[J")
        if parts:
            self._write("".join(parts))
        self._shown = list(lines)

    def _enter(self) -> None:
        self._mode = _without_enter(sys.stdin.fileno())
        self._shown = []
        self._write(_ENTER + "\x1b[2J")

    def _leave(self) -> None:
        mode, self._mode = self._mode, None
        if mode is not None:
            _restore(sys.stdin.fileno(), mode)
            self._write(_LEAVE)

    def _resized(self, number: int, frame: FrameType | None) -> None:
        self._shown = []
        self._write("\x1b[2J")
        self.wake()

    def _stopped(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: restore the terminal for the shell, and take it again when the command continues."""
        self._leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._enter()
        self.wake()

    def _write(self, text: str) -> None:
        try:
            # One direct write, so that all changes appear together.
            data = text.encode(sys.stdout.encoding or "utf-8", "replace")
            while data:
                data = data[os.write(sys.stdout.fileno(), data) :]
        except OSError:  # the terminal is gone; the next read of a key raises
            pass


def is_terminal() -> bool:
    """Whether stdin and stdout are a terminal that can be drawn on."""
    try:
        import termios  # noqa: F401 - not on Windows
    except ImportError:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _without_enter(descriptor: int) -> list[object]:
    """Make keys arrive one by one and without echo. Returns the old mode."""
    import termios
    import tty

    mode: list[object] = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    return mode


def _restore(descriptor: int, mode: list[object]) -> None:
    import termios

    with contextlib.suppress(termios.error):  # the terminal is gone
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)  # type: ignore[arg-type]
