"""A file of the user: read with limits, and its name in a form that is safe to print."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from attn_kata.errors import UsageError, why

MOST_BYTES = 1_000_000  # an attempt is a page or two; a larger file is a mistake in the command


def read(path: Path, *, most: int = MOST_BYTES, name: str = "", instead: str | None = None) -> bytes:
    """The bytes of an attempt. Raises UsageError for a folder, a device, no permission, or more than `most` bytes.

    `name`: what the error calls the file, if not its path. `instead`: what to do with a file that is too large.
    """
    name = name or shown(path)
    try:
        if path.is_dir():
            raise UsageError(f"'{name}' is a folder.", next_step="Name the file in it: attn-kata grade FILE")
        with open(path, "rb", opener=_at_once) as file:
            kind = os.fstat(file.fileno())
            if not stat.S_ISREG(kind.st_mode):
                raise UsageError(f"'{name}' is not a regular file.", next_step="attn-kata grade FILE")
            if kind.st_size > most:
                raise UsageError(
                    f"'{name}' has {kind.st_size:,} bytes; an attempt has at most {most:,}.", next_step=instead
                )
            return file.read(most)
    except OSError as problem:
        raise UsageError(f"'{name}' cannot be read: {why(problem)}.") from problem


def shown(path: Path) -> str:
    """`path` relative to the current folder if it is inside, else the full path; always printable."""
    with contextlib.suppress(ValueError, OSError):
        path = path.relative_to(Path.cwd())
    return printable(str(path))


def printable(name: str) -> str:
    """A file name that is safe to print: unprintable characters become �."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)


def _at_once(path: str, flags: int) -> int:
    """Open without blocking on a named pipe; `read` checks the kind of file after opening it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
