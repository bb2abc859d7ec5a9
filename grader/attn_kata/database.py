"""One SQLite file with a schema: it is opened for each call, and a damaged file is set aside.

A damaged file gets another name and is never deleted. The journal is a rollback journal and not WAL, because home
folders are also on network file systems. Commands that write at the same time wait for each other.

What an unusable file means is the caller's policy: `history` warns and goes on, `interview.storage` raises NotKept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from attn_kata.errors import why

_T = TypeVar("_T")
Row = tuple[Any, ...]


class DatabaseUnusable(Exception):
    """The file can be neither used nor replaced, and is left as it is. The text is half a sentence, without a full stop."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"'{file}' cannot be used ({reason})")


class Database:
    """The SQLite file `name` in `folder`, with the tables of `schema`. Nothing is opened before the first call.

    `warn` gets one sentence when a damaged file is set aside. `bad_values` are the exceptions of a caller's `work` that
    mean that a stored value is damaged.
    """

    def __init__(
        self,
        folder: Callable[[], Path],
        name: str,
        *,
        schema: int,
        tables: str,
        busy_seconds: float,
        warn: Callable[[str], None],
        bad_values: tuple[type[Exception], ...] = (),
    ) -> None:
        self._folder, self._name = folder, name
        self._schema, self._tables = schema, tables
        self._busy_seconds = busy_seconds
        self._warn = warn
        self._problems: tuple[type[Exception], ...] = (sqlite3.DatabaseError, *bad_values)

    def read(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """The result of `work`, or `otherwise` when there is no file. Raises DatabaseUnusable."""
        return self._use(lambda file: self._call(file, work) if file.exists() else otherwise)

    def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """The result of `work`, which ran in one transaction; it is on the disk now. Raises DatabaseUnusable."""
        return self._use(lambda file: self._call(file, lambda db: _transaction(db, work)), create=True)

    def _use(self, call: Callable[[Path], _T], *, create: bool = False) -> _T:
        file = self._file(create)
        for _ in range(3):  # again after a damaged file was set aside, by this command or by another one
            before = _identity(file)
            try:
                return call(file)
            except self._problems as problem:
                if not _is_damage(problem):
                    raise DatabaseUnusable(file, str(problem)) from problem
                self._set_aside(file, before, problem)
        raise DatabaseUnusable(file, "it is damaged and cannot be renamed")

    def _file(self, create: bool) -> Path:
        file = Path(self._name)  # for the message, when the folder has no name
        try:
            file = self._folder() / self._name
            file.exists()  # a folder without permissions raises here, in one place
            if create:
                file.parent.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError) as problem:
            raise DatabaseUnusable(file, why(problem) if isinstance(problem, OSError) else str(problem)) from problem
        return file

    def _call(self, file: Path, work: Callable[[sqlite3.Connection], _T]) -> _T:
        with closing(sqlite3.connect(file, timeout=self._busy_seconds, isolation_level=None)) as db:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA synchronous = FULL")  # a finished write survives a power failure
            self._prepare(db, file)
            return work(db)

    def _prepare(self, db: sqlite3.Connection, file: Path) -> None:
        """Create the tables in a new file."""
        version = _version(db)
        if version > self._schema:
            raise DatabaseUnusable(file, "a newer attn-kata wrote it")

        def create(db: sqlite3.Connection) -> None:
            if _version(db) == 0:  # another command may have created them in the meantime
                for statement in self._tables.split(";"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {self._schema}")

        if version == 0:
            _transaction(db, create)

    def _set_aside(self, file: Path, before: object, problem: Exception) -> None:
        number = 1
        while (aside := file.with_name(f"{file.stem}.damaged-{number}{file.suffix}")).exists():
            number += 1
        try:
            if _identity(file) != before:
                return  # another command was faster, and this one tries again
            file.replace(aside)
            # A journal belongs to its file: SQLite would apply it to the new one.
            journal = file.with_name(file.name + "-journal")
            if journal.exists():
                journal.replace(aside.with_name(aside.name + "-journal"))
        except OSError:
            return
        self._warn(f"The file '{file}' was damaged ({problem}). It is kept as '{aside.name}', and a new file begins.")


def rows(db: sqlite3.Connection, query: str, *values: object) -> list[Row]:
    """All rows of `query`."""
    return db.execute(query, values).fetchall()


def _identity(file: Path) -> object:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def _is_damage(problem: Exception) -> bool:
    # "malformed" and "not a database" are plain DatabaseErrors. A missing table and text that is not UTF-8 are damage
    # too, though SQLite calls them operational; so is a value that the caller cannot read, such as a broken date.
    if isinstance(problem, sqlite3.OperationalError):
        return str(problem).startswith(("no such", "Could not decode"))
    return type(problem) is sqlite3.DatabaseError or not isinstance(problem, sqlite3.DatabaseError)


def _version(db: sqlite3.Connection) -> int:
    return int(rows(db, "PRAGMA user_version")[0][0])


def _transaction(db: sqlite3.Connection, work: Callable[[sqlite3.Connection], _T]) -> _T:
    db.execute("BEGIN IMMEDIATE")  # waits for other writers now, and not in the middle
    try:
        result = work(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK")
        raise
    return result
