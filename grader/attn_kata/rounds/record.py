"""The record of rounds on this machine: the hunts that were written, and how every round went. One SQLite file.

It is beside the history, and never stops a command either: when the file cannot be used, `Record` warns once and
answers as if it were empty.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Literal, TypeVar

from attn_kata.database import Database, DatabaseUnusable, rows
from attn_kata.history import BUSY_SECONDS, Graded, home, stored_path
from attn_kata.report.model import HuntResult, Report
from attn_kata.rounds import hunt
from attn_kata.rounds.spoiled import Spoiled

SCHEMA = 1

# `hunt`: the files that were written, with what was edited into them. `result`: one row for each judged round;
# `wrong` is a JSON list of what was not found, mended or answered.
_TABLES = """
CREATE TABLE hunt (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, kata TEXT NOT NULL, path BLOB NOT NULL, minutes REAL, spoiled TEXT NOT NULL
);
CREATE TABLE result (
    id INTEGER PRIMARY KEY, at TEXT NOT NULL, kata TEXT NOT NULL, round TEXT NOT NULL, passed INTEGER NOT NULL,
    wrong TEXT NOT NULL
);
CREATE INDEX hunt_by_path ON hunt (path)
"""

Round = Literal["hunt", "napkin", "review"]
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """A hunt that was written. `minutes` is its limit, None for none."""

    spoiled: Spoiled
    at: datetime
    minutes: float | None

    def judged(self, report: Report, source: bytes) -> Report:
        """The report of a grading of its file as `source`, with what became of the mistakes. It ends in sentences of it."""
        minutes = (datetime.now(timezone.utc) - self.at) / timedelta(minutes=1)
        in_time = None if self.minutes is None else minutes <= self.minutes
        result = hunt.judge(self.spoiled, source, report, minutes=max(0.0, minutes), in_time=in_time)
        if result is None:
            return report
        return replace(report, hunt=result, notes=[*report.notes, *hunt.sentences(result)])


class Record:
    """The kept rounds. Opens no file before the first call; no method raises for a broken or missing file."""

    def __init__(self, warn: Callable[[str], None], folder: Path | None = None) -> None:
        self._warn = warn
        self._usable = True  # after the first failure, no other call waits for the file
        self._database = Database(
            lambda: folder or home(),
            "rounds.db",
            schema=SCHEMA,
            tables=_TABLES,
            busy_seconds=BUSY_SECONDS,
            warn=warn,
            bad_values=(ValueError, TypeError, KeyError, AttributeError),
        )

    def hunt_begun(self, spoiled: Spoiled, path: Path, minutes: float | None) -> bool:
        """Keep a hunt whose file was written at `path`. Returns whether it was kept."""
        row = (_now(), spoiled.kata, stored_path(path), minutes, json.dumps(spoiled.to_dict()))

        def write(db: sqlite3.Connection) -> bool:
            db.execute("INSERT INTO hunt (at, kata, path, minutes, spoiled) VALUES (?, ?, ?, ?, ?)", row)
            return True

        return self._try(lambda: self._database.write(write), False)

    def hunt_at(self, path: Path, kata: str) -> Hunt | None:
        """The last hunt of `kata` whose file was written at `path`."""

        def read(db: sqlite3.Connection) -> Hunt | None:
            query = "SELECT at, minutes, spoiled FROM hunt WHERE kata = ? AND path IN (?, ?) ORDER BY id DESC LIMIT 1"
            found = rows(db, query, kata, stored_path(path.absolute()), stored_path(path.resolve()))
            if not found:
                return None
            at, minutes, spoiled = found[0]
            return Hunt(spoiled=Spoiled.from_dict(json.loads(spoiled)), at=datetime.fromisoformat(at), minutes=minutes)

        return self._try(lambda: self._database.read(read, None), None)

    def hunt_went(self, kata: str, result: HuntResult) -> None:
        """Keep how a grading of a hunt's file went."""
        wrong = [*result.left, *result.new, *result.unclear]
        self.went(kata, "hunt", wrong or result.other)

    def went(self, kata: str, name: Round, wrong: Sequence[str]) -> None:
        """Keep how a round went: `wrong` has what was not found, mended or answered; it is empty after a good one."""
        row = (_now(), kata, name, not wrong, json.dumps(list(wrong)))

        def write(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO result (at, kata, round, passed, wrong) VALUES (?, ?, ?, ?, ?)", row)

        self._try(lambda: self._database.write(write), None)

    def results(self) -> list[Graded]:
        """Every round that was judged, in the order of time, as `practice` reads it."""

        def read(db: sqlite3.Connection) -> list[Graded]:
            return [
                Graded(
                    kata=kata,
                    at=datetime.fromisoformat(at),
                    passed=bool(passed),
                    failed=tuple(str(each) for each in json.loads(wrong)),
                    round=name,
                )
                for at, kata, name, passed, wrong in rows(db, "SELECT at, kata, round, passed, wrong FROM result")
            ]

        none: list[Graded] = []
        return sorted(self._try(lambda: self._database.read(read, none), none), key=lambda one: one.at)

    def _try(self, call: Callable[[], _T], otherwise: _T) -> _T:
        if not self._usable:
            return otherwise
        try:
            return call()
        except DatabaseUnusable as problem:
            self._usable = False
            self._warn(f"Nothing is kept of this round: {problem}.")
            return otherwise


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
