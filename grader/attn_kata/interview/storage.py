"""The SQLite file under the kept sessions: what a call returns is on the disk; what could not be kept raises.

A damaged file is set aside under another name, never deleted, and that is said. Opened for each call and closed again,
so that many commands and threads share it; those that write at the same time wait for each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from attn_kata.errors import UsageError, why

BUSY_SECONDS = 10.0

_T = TypeVar("_T")
Row = tuple[Any, ...]


class NotKept(UsageError):
    """Something could not be written down, and so has not happened. `reason` is why, without what follows from it."""

    reason = ""


class Storage:
    """One SQLite file with the tables of `schema`."""

    def __init__(self, file: Callable[[], Path], *, schema: int, tables: str, warn: Callable[[str], None]) -> None:
        self._find, self._schema, self._tables, self._warn = file, schema, tables, warn

    def read(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """What `work` gives, or `otherwise` where there is no file. Raises NotKept where it cannot be read."""
        return self._use(work) if self._file().exists() else otherwise

    def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """What `work` gives, in one transaction that is on the disk when this returns. Raises NotKept."""

        def transaction(db: sqlite3.Connection) -> _T:
            db.execute("BEGIN IMMEDIATE")
            try:
                result = work(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk may have ended it already
                    db.execute("ROLLBACK")
                raise
            return result

        file = self._file()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise _not_kept(file, why(problem)) from problem
        return self._use(transaction)

    def _file(self) -> Path:
        try:
            file = self._find()
            file.exists()  # a folder that may not be entered raises here, in one place
        except (OSError, RuntimeError) as problem:
            reason = why(problem) if isinstance(problem, OSError) else str(problem)
            raise _not_kept(Path("interview.db"), reason) from problem
        return file

    def _use(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        file = self._file()
        for _ in range(3):  # once, and again where a damaged file was set aside, here or by a command beside this one
            before = _identity(file)
            try:
                with closing(sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)) as db:
                    self._prepare(db)
                    return work(db)
            except sqlite3.DatabaseError as problem:
                if not _is_damage(problem):
                    raise _not_kept(file, str(problem)) from problem
                self._set_aside(file, before, problem)
        raise _not_kept(file, "it is damaged and cannot be moved")

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA synchronous = FULL")  # what was reported as kept survives the power going off
        version = rows(db, "PRAGMA user_version")[0][0]
        if version > self._schema:
            raise sqlite3.OperationalError("a newer attn-kata wrote it")
        if version == 0:
            db.execute("BEGIN IMMEDIATE")
            if rows(db, "PRAGMA user_version")[0][0] == 0:  # not made meanwhile by a command beside this one
                for statement in self._tables.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {self._schema}")
            db.execute("COMMIT")

    def _set_aside(self, file: Path, before: object, problem: Exception) -> None:
        number = 1
        while (aside := file.with_name(f"{file.stem}.damaged-{number}{file.suffix}")).exists():
            number += 1
        try:
            if _identity(file) != before:
                return  # another command was faster
            file.replace(aside)
            journal = file.with_name(file.name + "-journal")
            if journal.exists():  # beside a new file SQLite would play it back
                journal.replace(aside.with_name(aside.name + "-journal"))
        except OSError:
            return
        self._warn(
            f"The file '{file}' was damaged ({problem}); it is kept as '{aside.name}', and a new one begins. "
            "The attempts in your folders are as they were."
        )


def rows(db: sqlite3.Connection, query: str, *values: object) -> list[Row]:
    """Every row that `query` gives."""
    return db.execute(query, values).fetchall()


def _not_kept(file: Path, reason: str) -> NotKept:
    problem = NotKept(
        f"Nothing was kept: '{file}' cannot be used ({reason}). Your own file is as it was, and the clock runs on.",
        next_step="Make room or give back the permissions, then type the same again. Another place: ATTN_KATA_HOME=DIR",
    )
    problem.reason = f"'{file}' cannot be used ({reason})"
    return problem


def _identity(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _is_damage(problem: sqlite3.DatabaseError) -> bool:
    # "malformed" and "not a database" are plain DatabaseErrors; a table that is gone is called operational.
    if isinstance(problem, sqlite3.OperationalError):
        return str(problem).startswith(("no such", "Could not decode"))
    return type(problem) is sqlite3.DatabaseError
