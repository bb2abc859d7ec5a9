"""Output: results on stdout, everything else on stderr. A closed pipe is not an error."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Iterator

from attn_kata.errors import UsageError, why
from attn_kata.report.ascii import ERRORS, in_ascii
from attn_kata.report.plain import plain


def emit(text: str) -> None:
    """Write `text` to stdout in any encoding. A closed pipe (`| head`) is not an error."""
    try:
        _reconfigure_for_any_text()
        said = text if text.endswith("\n") else text + "\n"
        sys.stdout.write(in_ascii(said) if _is_ascii_terminal() else said)
        sys.stdout.flush()
    except BrokenPipeError:
        # Without this, Python reports the error again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UsageError(f"Standard output cannot be written: {why(problem)}.") from problem


_ERASED = "\r\x1b[K"  # the line on which the cursor is
_shown: list[str] = []  # what `waiting` shows now


def warn(sentence: str) -> None:
    """Print one line on stderr, without characters that move the cursor; above what `waiting` shows."""
    with contextlib.suppress(OSError):  # stderr is closed
        print((_ERASED if _shown else "") + plain(sentence), file=sys.stderr, flush=True)
        print(*_shown, end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def waiting(sentence: str, after: float = 2.0) -> Iterator[None]:
    """Show `sentence` on stderr after `after` seconds, and erase it at the end; only on a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return

    import threading

    def say() -> None:
        _shown.append(in_ascii(sentence) if _is_ascii_terminal() else sentence)
        with contextlib.suppress(OSError):
            print(*_shown, end="", file=sys.stderr, flush=True)

    timer = threading.Timer(after, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if _shown:
            _shown.clear()
            with contextlib.suppress(OSError):
                print(_ERASED, end="", file=sys.stderr, flush=True)


def terminal_columns(least: int = 50) -> int:
    """The terminal's columns, or what COLUMNS says; 80 in a pipe. Reports need 50."""
    # Like shutil.get_terminal_size, but importing shutil also imports four archive formats: a tenth of the time of `list`.
    said = os.environ.get("COLUMNS", "")
    columns = int(said) if said.isdecimal() else 0
    if not columns:
        with contextlib.suppress(AttributeError, ValueError, OSError):  # no stdout, a closed one, or not a terminal
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return max(least, columns or 80)


def width() -> int:
    """Columns for text: the terminal's, but at most 110, so that lines stay easy to read."""
    return min(terminal_columns(), 110)


def color() -> bool:
    """Whether to print colours: stdout is a terminal. NO_COLOR, FORCE_COLOR and TERM=dumb are respected."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def paragraph(text: str, indent: str = "") -> str:
    """`text` wrapped to the width, every line after `indent`."""
    return textwrap.fill(text, width(), initial_indent=indent, subsequent_indent=indent, break_long_words=False)


def _reconfigure_for_any_text() -> None:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=ERRORS)


def _is_ascii_terminal() -> bool:
    """Whether somebody who asked for the C locale reads this. Python itself writes UTF-8 there (PEP 540)."""
    said = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG")
    return said in ("C", "POSIX") and sys.stdout.isatty()
