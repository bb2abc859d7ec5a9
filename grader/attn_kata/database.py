"""A SQLite file that never stops a command: where it cannot be used, that is said once and nothing is kept.

A damaged file is set aside under another name, never deleted. Rollback journal, not WAL: homes lie on network file
systems too. Commands that run at the same time wait for each other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

BUSY_SECONDS = 5.0

_T = TypeVar("_T")


class Database:
    """One SQLite file with the tables of `schema`. Opens nothing before the first question, and nothing between two."""

    def __init__(self, file: Callable[[], Path], *, schema: int, tables: str, warn: Callable[[str], None]) -> None:
        self._file = file
        self._schema = schema
        self._tables = tables
        self._warn = warn
        self._warned = False
        self._useless = False  # once it was: nobody wants to wait for it twice

    def read(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """What `work` gives, or `otherwise` where there is no file or it is of no use."""
        return self._use(work, otherwise, writes=False)

    def write(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """What `work` gives in one transaction, or `otherwise` where the file is of no use."""
        return self._use(work, otherwise, writes=True)

    def _use(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T, *, writes: bool) -> _T:
        if self._useless:
            return otherwise
        try:
            return self._try(work, otherwise, writes=writes)
        except _Useless as problem:
            self._useless = True
            self._say(f"{problem}: nothing is kept.")
            return otherwise

    def _try(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T, *, writes: bool) -> _T:
        for _ in range(3):  # once; again when a damaged file was set aside, here or by a command beside this one
            try:
                file = self._file()
                if not writes and not file.exists():
                    return otherwise
                file.parent.mkdir(parents=True, exist_ok=True)
                before = _identity(file)
            except (OSError, RuntimeError) as problem:
                raise _Useless(f"The data folder cannot be used ({problem})") from problem
            try:
                with closing(sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)) as db:
                    self._prepare(db, file)
                    return _transaction(db, work) if writes else work(db)
            except (sqlite3.DatabaseError, ValueError, TypeError) as problem:
                if not _is_damage(problem):
                    raise _Useless(f"The file '{file}' cannot be used ({problem})") from problem
                self._set_aside(file, before, problem)
        raise _Useless(f"The file '{file}' is damaged and cannot be moved")

    def _prepare(self, db: sqlite3.Connection, file: Path) -> None:
        """Makes the tables where they are not there yet."""
        version = _version(db)
        if version > self._schema:
            raise _Useless(f"The file '{file}' was written by a newer attn-kata")

        def create(db: sqlite3.Connection) -> None:
            if _version(db) == 0:  # not made meanwhile by a command beside this one
                for statement in self._tables.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {self._schema}")

        if version == 0:
            _transaction(db, create)

    def _set_aside(self, file: Path, before: object, problem: Exception) -> None:
        try:
            if _identity(file) != before:
                return  # another command was faster, and this one tries again
            aside = _free(file)
            file.replace(aside)
            # A journal belongs to its file: beside a new one SQLite would play it back.
            journal = file.with_name(file.name + "-journal")
            if journal.exists():
                journal.replace(aside.with_name(aside.name + "-journal"))
        except OSError:
            return
        self._say(f"The file '{file}' was damaged ({problem}); it is kept as '{aside.name}', and a new one begins.")

    def _say(self, sentence: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(sentence)


def rows(db: sqlite3.Connection, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Every row that `query` gives."""
    return db.execute(query, values).fetchall()


class _Useless(Exception):
    """The file can be neither used nor put right, and is left as it is."""


def _free(file: Path) -> Path:
    number = 1
    while (aside := file.with_name(f"{file.stem}.damaged-{number}{file.suffix}")).exists():
        number += 1
    return aside


def _identity(file: Path) -> object:
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def _is_damage(problem: Exception) -> bool:
    # "malformed" and "not a database" are plain DatabaseErrors. A table that is gone and text that is no text are
    # damage too, though SQLite calls them operational; so is a date that is none.
    if isinstance(problem, sqlite3.OperationalError):
        return str(problem).startswith(("no such", "Could not decode"))
    return type(problem) is sqlite3.DatabaseError or not isinstance(problem, sqlite3.DatabaseError)


def _version(db: sqlite3.Connection) -> int:
    return int(rows(db, "PRAGMA user_version")[0][0])


def _transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    db.execute("BEGIN IMMEDIATE")  # waits for its turn at once, not in the middle
    try:
        result = work(db)
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
    return result
