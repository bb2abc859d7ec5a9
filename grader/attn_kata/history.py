"""The history on this machine: the current kata, every grading, hints given, references shown. One SQLite file.

It is in the user's data folder (`platformdirs`), or in the folder that the environment variable ATTN_KATA_HOME names.
The history never stops a command. When the file cannot be used, `History` warns once and answers as if it were empty.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attn_kata.database import Database, DatabaseUnusable, Row, rows

if TYPE_CHECKING:
    from attn_kata.report.model import Report

SCHEMA = 1
BUSY_SECONDS = 5.0

_TABLES = """
CREATE TABLE start (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, kata TEXT NOT NULL, path BLOB NOT NULL, level TEXT NOT NULL
);
CREATE TABLE current (one INTEGER PRIMARY KEY CHECK (one = 1), kata TEXT NOT NULL, path BLOB NOT NULL);
CREATE TABLE grading (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, kata TEXT NOT NULL, path BLOB NOT NULL, outcome TEXT NOT NULL,
    seconds REAL NOT NULL, seed INTEGER NOT NULL, whole INTEGER NOT NULL, mistakes TEXT NOT NULL
);
CREATE TABLE finding (
    grading INTEGER NOT NULL REFERENCES grading (id), property TEXT NOT NULL, tier TEXT NOT NULL, outcome TEXT NOT NULL
);
CREATE TABLE hint (kata TEXT NOT NULL, number INTEGER NOT NULL, at TEXT NOT NULL, PRIMARY KEY (kata, number));
CREATE TABLE shown (id INTEGER PRIMARY KEY, at TEXT NOT NULL, kata TEXT NOT NULL, given_up INTEGER NOT NULL);
CREATE INDEX grading_by_kata ON grading (kata, at);
CREATE INDEX finding_by_grading ON finding (grading);
"""

_T = TypeVar("_T")
_MAKE_CURRENT = "INSERT OR REPLACE INTO current VALUES (1, ?, ?)"


@dataclass(frozen=True, kw_only=True)
class Current:
    """The kata of a command without an argument, and the absolute path of its attempt."""

    kata: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The history of one kata. `best` is the shortest time from a `start` or `reset` to its first pass."""

    attempts: int = 0
    passed_at: datetime | None = None
    best: timedelta | None = None
    hints: int = 0
    gave_up: bool = False


@dataclass(frozen=True, kw_only=True)
class Failing:
    """A property, and the number of gradings in which it did not hold."""

    kata: str
    property: str
    failed: int
    graded: int


@dataclass(frozen=True, kw_only=True)
class Graded:
    """One full grading of a kata. `failed` are the core properties that did not hold.

    `round` is empty; or it names a round, such as a bug hunt, and `failed` has what went wrong in it.
    """

    kata: str
    at: datetime
    passed: bool
    failed: tuple[str, ...]
    round: str = ""


def home() -> Path:
    """The data folder; it need not exist."""
    chosen = os.environ.get("ATTN_KATA_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()

    import platformdirs  # only here: importing it takes as long as SQLite

    return Path(platformdirs.user_data_dir("attn-kata", appauthor=False))


class History:
    """The kept history. Opens no file before the first call; no method raises for a broken or missing file."""

    def __init__(self, warn: Callable[[str], None], folder: Path | None = None) -> None:
        self._warn = warn
        self._warned = False
        self._unusable = False  # after the first failure, no other call waits for the file
        self._database = Database(
            lambda: folder or home(),
            "history.db",
            schema=SCHEMA,
            tables=_TABLES,
            busy_seconds=BUSY_SECONDS,
            warn=self._warn_once,
            bad_values=(ValueError, TypeError),
        )

    # Starts ------------------------------------------------------------------------------------------------

    def started(self, kata: str, path: Path, level: str) -> None:
        """A stub was written at `path`; it is the current kata now."""

        def write(db: sqlite3.Connection) -> None:
            insert = "INSERT INTO start (at, kata, path, level) VALUES (?, ?, ?, ?)"
            db.execute(insert, (_now(), kata, stored_path(path), level))
            db.execute(_MAKE_CURRENT, (kata, stored_path(path)))

        self._write(write, None)

    def make_current(self, kata: str, path: Path) -> None:
        """Make `kata`, at `path`, the kata of a command without an argument."""
        self._write(lambda db: db.execute(_MAKE_CURRENT, (kata, stored_path(path))), None)

    def current(self) -> Current | None:
        """The current kata, or None before the first `start`."""
        found = self._rows("SELECT kata, path FROM current")
        return Current(kata=found[0][0], path=Path(os.fsdecode(found[0][1]))) if found else None

    def path_of(self, kata: str) -> Path | None:
        """Where `kata` was last started."""
        query = "SELECT path FROM start WHERE kata = ? ORDER BY id DESC LIMIT 1"
        found = self._rows(query, kata)
        return Path(os.fsdecode(found[0][0])) if found else None

    def wrote(self, kata: str, path: Path) -> bool:
        """Whether `start` or `reset` wrote a stub of `kata` at `path`."""
        query = "SELECT 1 FROM start WHERE kata = ? AND path IN (?, ?)"
        return bool(self._rows(query, kata, stored_path(path), stored_path(path.resolve())))

    def passed_path(self, kata: str) -> Path | None:
        """The path of the last attempt that passed."""
        query = "SELECT path FROM grading WHERE kata = ? AND outcome = 'passed' AND whole ORDER BY id DESC LIMIT 1"
        found = self._rows(query, kata)
        return Path(os.fsdecode(found[0][0])) if found else None

    # Gradings -------------------------------------------------------------------------------------------------

    def record(self, report: Report, path: Path, *, whole: bool) -> None:
        """Keep one grading. `whole` is False for a grading of some properties only, which cannot pass the kata.

        Neither can code by other names, which is practice.
        """
        mistakes = [[mistake.id for mistake in found.mistakes] for found in report.diagnosis]
        row = (
            _now(),
            report.kata,
            stored_path(path),
            report.outcome,
            report.seconds.get("total", 0.0),
            report.seed,
            whole and report.reading is None,
            json.dumps(mistakes),
        )

        def write(db: sqlite3.Connection) -> None:
            marks = ", ".join("?" * len(row))
            columns = "at, kata, path, outcome, seconds, seed, whole, mistakes"
            grading = db.execute(f"INSERT INTO grading ({columns}) VALUES ({marks})", row).lastrowid
            db.executemany(
                "INSERT INTO finding VALUES (?, ?, ?, ?)",
                [(grading, finding.property, finding.tier, finding.outcome) for finding in report.findings],
            )

        self._write(write, None)

    def gradings(self) -> list[Graded]:
        """Every full grading, in the order of time."""
        query = """
            SELECT grading.id, kata, at, grading.outcome, property, tier, finding.outcome
            FROM grading LEFT JOIN finding ON finding.grading = grading.id WHERE whole ORDER BY grading.id
        """
        made = []
        for _, group in groupby(self._rows(query), key=lambda row: row[0]):
            found = list(group)
            _, kata, at, outcome = found[0][:4]
            failed = tuple(row[4] for row in found if row[5] == "core" and row[6] in ("failed", "errored"))
            made.append(Graded(kata=kata, at=datetime.fromisoformat(at), passed=outcome == "passed", failed=failed))
        return sorted(made, key=lambda one: one.at)

    def progress(self) -> dict[str, Progress]:
        """The progress of each kata with any history."""
        return self._read(_progress, {})

    def failing(self, limit: int) -> list[Failing]:
        """The core properties that fail most, the worst first."""
        query = """
            SELECT kata, property, SUM(finding.outcome IN ('failed', 'errored')) AS failed, COUNT(*)
            FROM finding JOIN grading ON grading.id = finding.grading
            WHERE tier = 'core' AND finding.outcome != 'skipped'
            GROUP BY kata, property HAVING failed > 0 ORDER BY failed DESC, kata, property LIMIT ?
        """
        return [
            Failing(kata=kata, property=name, failed=failed, graded=graded)
            for kata, name, failed, graded in self._rows(query, limit)
        ]

    # Hints and references ----------------------------------------------------------------------------------------------

    def hints_given(self, kata: str) -> set[int]:
        """The numbers (from 1) of the hints that were given."""
        return {int(number) for (number,) in self._rows("SELECT number FROM hint WHERE kata = ?", kata)}

    def hint_given(self, kata: str, number: int) -> bool:
        """A hint was given. False if it had been given before, perhaps a moment ago by another command."""
        insert = "INSERT OR IGNORE INTO hint VALUES (?, ?, ?)"
        return self._write(lambda db: db.execute(insert, (kata, number, _now())).rowcount > 0, True)

    def last_mistakes(self, kata: str) -> list[str]:
        """The ids of the mistakes that the last grading found, the first diagnosis first."""
        found = self._rows("SELECT mistakes FROM grading WHERE kata = ? ORDER BY id DESC LIMIT 1", kata)
        try:
            return [str(id) for one in json.loads(found[0][0]) for id in one] if found else []
        except (ValueError, TypeError):  # somebody else wrote into the file
            return []

    def shown(self, kata: str, *, given_up: bool) -> None:
        """The reference was shown."""
        insert = "INSERT INTO shown (at, kata, given_up) VALUES (?, ?, ?)"
        self._write(lambda db: db.execute(insert, (_now(), kata, given_up)), None)

    def _rows(self, query: str, *values: object) -> list[Row]:
        none: list[Row] = []
        return self._read(lambda db: rows(db, query, *values), none)

    def _read(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        return self._try(lambda: self._database.read(work, otherwise), otherwise)

    def _write(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        return self._try(lambda: self._database.write(work), otherwise)

    def _try(self, call: Callable[[], _T], otherwise: _T) -> _T:
        if self._unusable:
            return otherwise
        try:
            return call()
        except DatabaseUnusable as problem:
            self._unusable = True
            self._warn_once(f"Nothing is kept: {problem}.")
            return otherwise

    def _warn_once(self, sentence: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(sentence)


def _progress(db: sqlite3.Connection) -> dict[str, Progress]:
    gathered: dict[str, dict[str, Any]] = {}
    begun: dict[tuple[str, object], datetime] = {}
    query = """
        SELECT at, kata, path, 'start' FROM start
        UNION ALL SELECT at, kata, path, CASE WHEN whole THEN outcome ELSE 'part' END FROM grading ORDER BY 1
    """
    for at, kata, path, event in rows(db, query):
        moment = datetime.fromisoformat(at)
        of_kata = gathered.setdefault(kata, {})
        if event == "start":
            begun[kata, path] = moment
            continue
        of_kata["attempts"] = of_kata.get("attempts", 0) + 1
        if event == "passed":
            of_kata.setdefault("passed_at", moment)
            if (kata, path) in begun:  # the first pass after this start
                took = moment - begun.pop((kata, path))
                of_kata["best"] = min(of_kata.get("best", took), took)
    for kata, hints in rows(db, "SELECT kata, COUNT(*) FROM hint GROUP BY kata"):
        gathered.setdefault(kata, {})["hints"] = hints
    for (kata,) in rows(db, "SELECT DISTINCT kata FROM shown WHERE given_up"):
        gathered.setdefault(kata, {})["gave_up"] = True
    return {kata: Progress(**values) for kata, values in gathered.items()}


def stored_path(path: Path) -> str | bytes:
    """The path as text, or as bytes if it is not valid Unicode."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text)
    return text


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
