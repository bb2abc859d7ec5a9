"""Whether somebody else is in the room of a session, and whether it was left or only stopped to be.

A locked file beside the sessions: the lock goes with its process whatever ends it, the file only when the room is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

CRASHED = "The room was killed the last time. Your file is here; at most the last second of typing is lost."
SHARED = "Another room is open on this interview. Both write the same file: what one saves, the other one loads."


class Presence:
    """One room's own. Where the file cannot be made, nothing is known and nothing is said."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: tuple[int, Path] | None = None

    def arrive(self, session: int) -> str:
        """Be there; gives what there is to say of whoever was there before."""
        if self._held is not None:
            return ""
        path = self._folder / f"room-{session}.lock"
        try:
            was_there = path.exists()
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return ""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(handle)
            return SHARED if isinstance(problem, BlockingIOError) else ""  # others: a file system without locks
        self._held = handle, path
        return CRASHED if was_there else ""

    def leave(self) -> None:
        """Be gone, in good order."""
        if self._held is not None:
            handle, path = self._held
            self._held = None
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(handle)
