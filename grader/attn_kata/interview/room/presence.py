"""Detects whether another room is open on a session, and whether the last room was killed.

It uses a locked file beside the sessions. The lock ends with its process; the file is removed when the room is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

CRASHED = "The last room was killed. Your file is here; at most one second of typing is lost."
SHARED = "Another room is open on this interview. Both write the same file: each one loads what the other saves."


class Presence:
    """The presence of one room. If the file cannot be created, nothing is detected."""

    def __init__(self, folder: Path, name: str = "room") -> None:
        self._folder, self._name = folder, name
        self._held: tuple[int, Path] | None = None

    shared = SHARED

    def arrive(self, session: int) -> str:
        """Enter the room. Returns a message about another or an earlier room, or ""."""
        if self._held is not None:
            return ""
        path = self._folder / f"{self._name}-{session}.lock"
        try:
            was_there = path.exists()
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return ""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(handle)
            return SHARED if isinstance(problem, BlockingIOError) else ""  # other errors: a file system without locks
        self._held = handle, path
        return CRASHED if was_there else ""

    def leave(self) -> None:
        """Leave the room normally."""
        if self._held is not None:
            handle, path = self._held
            self._held = None
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(handle)
