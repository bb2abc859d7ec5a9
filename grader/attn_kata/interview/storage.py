"""The database of the kept sessions: a write is on the disk when it returns, or NotKept is raised."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from attn_kata.database import Database, DatabaseUnusable
from attn_kata.errors import UsageError

BUSY_SECONDS = 10.0

_T = TypeVar("_T")


class NotKept(UsageError):
    """An event could not be written to the disk, so it did not happen. `reason` is the cause alone."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"Nothing was kept: {reason}. Your own file is unchanged, and the clock goes on.",
            next_step="Free some space or restore the permissions, then repeat the command. "
            "Another place: ATTN_KATA_HOME=DIR",
        )
        self.reason = reason


class Storage:
    """`interview.db` in `folder`, with the tables of `schema`. `read` and `write` as Database's; both raise NotKept."""

    def __init__(self, folder: Callable[[], Path], *, schema: int, tables: str, warn: Callable[[str], None]) -> None:
        self._database = Database(
            folder,
            "interview.db",
            schema=schema,
            tables=tables,
            busy_seconds=BUSY_SECONDS,
            warn=lambda sentence: warn(f"{sentence} The attempts in your folders are unchanged."),
        )

    def read(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        try:
            return self._database.read(work, otherwise)
        except DatabaseUnusable as problem:
            raise NotKept(str(problem)) from problem

    def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            return self._database.write(work)
        except DatabaseUnusable as problem:
            raise NotKept(str(problem)) from problem
