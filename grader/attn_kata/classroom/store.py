"""The results of a class on the disk: one SQLite file in the folder of the run. A result is on the disk when `keep` returns.

A result belongs to a student and a key (`Setting.key`). A run with the same keys finds it again, so a run that was killed goes
on where it stopped. One run at a time writes to a folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attn_kata import files
from attn_kata.classroom.tree import MARK
from attn_kata.database import Database, DatabaseUnusable, Row, rows
from attn_kata.errors import UsageError, why
from attn_kata.report.model import Report

SCHEMA = 1
BUSY_SECONDS = 10.0
OURS = frozenset({MARK, f"{MARK}-journal", "class.lock"})

_TABLES = """
CREATE TABLE run (
    one INTEGER PRIMARY KEY CHECK (one = 1), kata TEXT NOT NULL, seed INTEGER NOT NULL, submissions TEXT NOT NULL
);
CREATE TABLE submission (
    place INTEGER PRIMARY KEY, student TEXT NOT NULL UNIQUE, name TEXT NOT NULL, file TEXT NOT NULL,
    sha256 TEXT NOT NULL, key TEXT NOT NULL, problem TEXT NOT NULL
);
CREATE TABLE left_out (sentence TEXT NOT NULL);
CREATE TABLE result (
    student TEXT NOT NULL, key TEXT NOT NULL, report BLOB, source BLOB NOT NULL, fault TEXT NOT NULL,
    PRIMARY KEY (student, key)
)
"""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A submission as a run has collected it. `key` is "" where `problem` says why it cannot be graded."""

    student: str
    name: str
    file: str
    sha256: str
    key: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A submission and what is known about it. `report` is None while it is not graded, and after a fault of ours."""

    listed: Listed
    report: Report | None
    source: bytes
    fault: str


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """The run whose results a folder holds."""

    kata: str
    seed: int
    submissions: str


class Store:
    """The results in one folder. Every method raises UsageError where the file cannot be used, as on a full disk."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self._database = Database(
            lambda: folder, MARK, schema=SCHEMA, tables=_TABLES, busy_seconds=BUSY_SECONDS, warn=warn
        )

    def info(self) -> RunInfo | None:
        """The run, or None in a new folder."""
        found = self._read(lambda db: rows(db, "SELECT kata, seed, submissions FROM run"), [])
        return RunInfo(kata=found[0][0], seed=found[0][1], submissions=found[0][2]) if found else None

    def begin(self, info: RunInfo, listed: list[Listed], left_out: list[str]) -> None:
        """Write down what this run will grade. Results from before stay."""

        def work(db: sqlite3.Connection) -> None:
            for table in ("run", "submission", "left_out"):
                db.execute(f"DELETE FROM {table}")
            db.execute("INSERT INTO run VALUES (1, ?, ?, ?)", (info.kata, info.seed, info.submissions))
            db.executemany(
                "INSERT INTO submission VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (place, each.student, each.name, each.file, each.sha256, each.key, each.problem)
                    for place, each in enumerate(listed)
                ],
            )
            db.executemany("INSERT INTO left_out VALUES (?)", [(sentence,) for sentence in left_out])

        self._write(work)

    def forget(self) -> None:
        """Remove all results."""
        self._write(lambda db: db.execute("DELETE FROM result"))

    def done(self) -> set[tuple[str, str]]:
        """Student and key of every result that is no fault."""
        return set(self._read(lambda db: rows(db, "SELECT student, key FROM result WHERE report IS NOT NULL"), []))

    def keep(self, student: str, key: str, source: bytes, report: dict[str, Any] | None, fault: str) -> None:
        """Write one result. It is on the disk when this returns."""
        packed = None if report is None else zlib.compress(json.dumps(report).encode())
        values = (student, key, packed, zlib.compress(source), fault)
        self._write(lambda db: db.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?, ?, ?)", values))

    def left_out(self) -> list[str]:
        """The sentences about files that belong to nobody."""
        return [found[0] for found in self._read(lambda db: rows(db, "SELECT sentence FROM left_out"), [])]

    def kept(self) -> Iterator[Kept]:
        """Every submission of the run in its order, one at a time: a large class does not fit in memory."""
        query = """
            SELECT submission.student, name, file, sha256, submission.key, problem, report, source, fault
            FROM submission LEFT JOIN result ON result.student = submission.student AND result.key = submission.key
            WHERE place = ?
        """
        for place in range(self._read(lambda db: rows(db, "SELECT COUNT(*) FROM submission"), [(0,)])[0][0]):
            yield _kept(self._read(lambda db, place=place: rows(db, query, place), [])[0])  # type: ignore[misc]

    def _read(self, work: Callable[[sqlite3.Connection], list[Row]], otherwise: list[Row]) -> list[Row]:
        with self._usable():
            return self._database.read(work, otherwise)

    def _write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        with self._usable():
            self._database.write(work)

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except DatabaseUnusable as problem:
            raise UsageError(
                f"The results cannot be written or read: {problem}.",
                next_step="What is in it stays. Make room or correct this, and give the same command again",
            ) from problem


def _kept(row: Row) -> Kept:
    student, name, file, sha256, key, problem, report, source, fault = row
    return Kept(
        listed=Listed(student=student, name=name, file=file, sha256=sha256, key=key, problem=problem),
        report=None if report is None else Report.from_dict(json.loads(zlib.decompress(report))),
        source=b"" if source is None else zlib.decompress(source),
        fault=fault or "",
    )


# --------------------------------------------------------------------------------------------------------- the folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder, made if needed, for this run alone. Raises UsageError if another run has it, or if it is not ours."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = {entry.name for entry in os.scandir(folder)}
        if there and MARK not in there and there - OURS:
            raise UsageError(
                f"'{files.shown(folder)}' has other files in it, and the results would mix with them.",
                next_step="Name a new folder: --out FOLDER",
            )
        handle = os.open(folder / "class.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as problem:
        raise UsageError(
            f"'{files.shown(folder)}' cannot be written: {why(problem)}.", next_step="Name another folder: --out FOLDER"
        ) from problem
    try:
        if not _lock(handle):
            raise UsageError(
                f"Another 'attn-kata class' is writing to '{files.shown(folder)}'.",
                next_step="Wait until it ends, or name another folder: --out FOLDER",
            )
        yield
    finally:
        os.close(handle)  # the lock ends with it, and with the process


def _lock(handle: int) -> bool:
    """Lock an open file. Returns False if another process has locked it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def existing(folder: Path, warn: Callable[[str], None]) -> tuple[Store, RunInfo]:
    """The store of a folder with results. Raises UsageError."""
    store = Store(folder, warn)
    info = store.info() if (folder / MARK).is_file() else None
    if info is None:
        raise UsageError(
            f"'{files.shown(folder)}' has no results of a class.",
            next_step="Grade one: attn-kata class SUBMISSIONS --kata KATA",
        )
    return store, info
