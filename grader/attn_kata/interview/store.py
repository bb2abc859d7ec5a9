"""The store of the sessions: one SQLite file beside the history, on this machine only.

Unlike the history, the store must not lose anything: when a function returns, the event and its snapshot are on the
disk. Otherwise it raises NotKept, and nothing has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from attn_kata.database import Row, rows
from attn_kata.errors import UsageError
from attn_kata.history import home
from attn_kata.interview.moments import Moment
from attn_kata.interview.rounds import TALK, Round
from attn_kata.interview.session import Event, Kind, Mode, Session, after
from attn_kata.interview.storage import Storage

SCHEMA = 1

# `active` is 1 while a session runs and NULL after it: UNIQUE lets many NULLs pass, and one 1.
_TABLES = """
CREATE TABLE session (
    id INTEGER PRIMARY KEY AUTOINCREMENT, active INTEGER UNIQUE CHECK (active = 1), track TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('mock', 'coached')), stages TEXT NOT NULL, seed INTEGER NOT NULL,
    folder BLOB NOT NULL
);
CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    kind TEXT NOT NULL, stage INTEGER NOT NULL, wall REAL NOT NULL, boot REAL NOT NULL, boot_id TEXT NOT NULL,
    source TEXT, data TEXT NOT NULL, FOREIGN KEY (session, source) REFERENCES snapshot (session, hash)
);
CREATE TABLE snapshot (
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE, hash TEXT NOT NULL, source BLOB NOT NULL,
    PRIMARY KEY (session, hash)
);
CREATE TABLE grading (
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE, stage INTEGER NOT NULL, hash TEXT NOT NULL,
    report TEXT NOT NULL, PRIMARY KEY (session, stage, hash)
);
CREATE TABLE scorecard (
    session INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE, body TEXT NOT NULL
);
CREATE INDEX event_by_session ON event (session, id)
"""


class AlreadyActive(UsageError):
    """There is a session that has not ended."""

    def __init__(self, session: Session) -> None:
        super().__init__(
            f"Interview {session.id} ({session.track}) still runs; only one can run at a time.",
            next_step="Continue it: attn-kata interview resume. Or end it: attn-kata interview end",
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An event to keep, with the source to keep with it."""

    kind: Kind
    stage: int
    moment: Moment
    data: dict[str, Any]
    source: bytes | None = None


def entry(session: Session, moment: Moment, kind: Kind, source: bytes | None = None, **data: object) -> Entry:
    """An event of the session's present stage."""
    return Entry(kind=kind, stage=session.stage, moment=moment, data=data, source=source)


class Store:
    """The kept sessions. Safe to use from several threads and processes at once."""

    def __init__(self, warn: Callable[[str], None], folder: Path | None = None) -> None:
        self._storage = Storage(lambda: folder or home(), schema=SCHEMA, tables=_TABLES, warn=warn)
        self._read: Session | None = None  # the one that was loaded last

    def create(
        self,
        *,
        track: str,
        mode: Mode,
        stages: tuple[Round, ...],
        seed: int,
        folder: Path,
        moment: Moment,
        data: dict[str, Any],
    ) -> Session:
        """A new session with its `created` event, which has `data`. Raises AlreadyActive, NotKept."""

        def write(db: sqlite3.Connection) -> Session:
            running = _active(db)
            if running is not None:
                raise AlreadyActive(running)
            row = (1, track, mode, json.dumps([asdict(stage) for stage in stages]), seed, os.fsencode(folder))
            insert = "INSERT INTO session (active, track, mode, stages, seed, folder) VALUES (?, ?, ?, ?, ?, ?)"
            number = db.execute(insert, row).lastrowid
            assert number is not None
            _insert(db, number, Entry(kind="created", stage=0, moment=moment, data=data))
            return _load(db, number)

        return self._storage.write(write)

    def change(self, number: int, decide: Callable[[Session], Iterable[Entry]]) -> Session:
        """Keep the entries that `decide` returns for the current session: all in one transaction, or none.

        If `decide` raises, nothing changes. Raises NotKept.
        """

        def write(db: sqlite3.Connection) -> Session:
            session = _load(db, number)
            for one in decide(session):
                session = after(session, _insert(db, number, one))
            if session.over:
                db.execute("UPDATE session SET active = NULL WHERE id = ?", (number,))
            return session

        return self._storage.write(write)

    def load(self, number: int) -> Session:
        """One session. Raises UsageError when the number is unknown.

        The room calls this every second, so it reads only new events.
        """
        known = self._read if self._read is not None and self._read.id == number else None
        found = self._storage.read(lambda db: _load(db, number, known), None)
        if found is None:
            raise _unknown(number)
        self._read = found
        return found

    def active(self) -> Session | None:
        """The session that has not ended, or None."""
        return self._storage.read(_active, None)

    def katas(self) -> list[list[str]]:
        """The katas of every session, the newest first."""
        found = self._rows("SELECT stages FROM session ORDER BY id DESC")
        return [[one["kata"] for one in json.loads(stages) if one["kata"]] for (stages,) in found]

    def sessions(self) -> list[Session]:
        """Every session, the newest first."""
        return self._storage.read(
            lambda db: [_load(db, row[0]) for row in rows(db, "SELECT id FROM session ORDER BY id DESC")], []
        )

    def source(self, number: int, digest: str) -> bytes:
        """A snapshot by its hash. Raises UsageError when there is none."""
        found = self._rows("SELECT source FROM snapshot WHERE session = ? AND hash = ?", number, digest)
        if not found:
            raise UsageError(
                f"Interview {number} has no version '{digest[:12]}'.", next_step="attn-kata interview list"
            )
        return bytes(found[0][0])

    def keep_report(self, number: int, stage: int, digest: str, report: dict[str, Any]) -> None:
        """The grading of one version. Raises NotKept."""
        row = (number, stage, digest, json.dumps(report))
        self._storage.write(lambda db: db.execute("INSERT OR REPLACE INTO grading VALUES (?, ?, ?, ?)", row))

    def reports(self, number: int) -> dict[tuple[int, str], dict[str, Any]]:
        """The gradings of a session by stage and hash."""
        query = "SELECT stage, hash, report FROM grading WHERE session = ?"
        return {(stage, digest): json.loads(report) for stage, digest, report in self._rows(query, number)}

    def keep_scorecard(self, number: int, body: dict[str, Any]) -> None:
        """Keep a scorecard. Raises NotKept."""
        row = (number, json.dumps(body))
        self._storage.write(lambda db: db.execute("INSERT OR REPLACE INTO scorecard VALUES (?, ?)", row))

    def scorecards(self) -> dict[int, dict[str, Any]]:
        """Every kept scorecard, by session."""
        kept = self._rows("SELECT session, body FROM scorecard ORDER BY session")
        return {number: json.loads(body) for number, body in kept}

    def delete(self, number: int) -> None:
        """Delete a session that has ended. Raises UsageError for a running or unknown one."""

        def write(db: sqlite3.Connection) -> None:
            session = _load(db, number)
            if not session.over:
                raise UsageError(f"Interview {number} has not ended.", next_step="First: attn-kata interview end")
            for table in ("event", "grading", "scorecard", "snapshot"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
            db.execute("DELETE FROM session WHERE id = ?", (number,))

        self._storage.write(write)

    def _rows(self, query: str, *values: object) -> list[Row]:
        none: list[Row] = []
        return self._storage.read(lambda db: rows(db, query, *values), none)


def digest_of(source: bytes) -> str:
    """The name of a version: SHA-256 of its bytes."""
    return hashlib.sha256(source).hexdigest()


def _insert(db: sqlite3.Connection, number: int, entry: Entry) -> Event:
    digest = None
    if entry.source is not None:
        digest = digest_of(entry.source)
        db.execute("INSERT OR IGNORE INTO snapshot VALUES (?, ?, ?)", (number, digest, entry.source))
    moment = entry.moment
    columns = "session, kind, stage, wall, boot, boot_id, source, data"
    row = (number, entry.kind, entry.stage, moment.wall, moment.boot, moment.boot_id, digest, json.dumps(entry.data))
    place = db.execute(f"INSERT INTO event ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid
    return Event(kind=entry.kind, stage=entry.stage, moment=moment, data=entry.data, source=digest, number=place or 0)


def _load(db: sqlite3.Connection, number: int, known: Session | None = None) -> Session:
    """The session of that number; `known` is an earlier state of it, or None."""
    found = rows(db, "SELECT track, mode, stages, seed, folder FROM session WHERE id = ?", number)
    if not found:
        raise _unknown(number)
    track, mode, stages, seed, folder = found[0]
    begins = Session(
        id=number,
        track=track,
        mode=mode,
        stages=_rounds(json.loads(stages)),
        seed=seed,
        folder=Path(os.fsdecode(folder)),
    )
    if known is not None and known.events:
        since = _events(db, number, known.events[-1].number)
        if since[:1] == [known.events[-1]]:  # else another file has replaced this one
            return reduce(after, since[1:], known)
    return reduce(after, _events(db, number), begins)


def _rounds(kept: list[dict[str, Any]]) -> tuple[Round, ...]:
    """The rounds of a session. Older versions kept only katas with minutes, to write; the talk followed always."""
    made = tuple(Round(**one) for one in kept)
    return made if any("kind" in one for one in kept) else (*made, TALK)


def _events(db: sqlite3.Connection, number: int, first: int = 0) -> list[Event]:
    query = (
        "SELECT id, kind, stage, wall, boot, boot_id, source, data FROM event WHERE session = ? AND id >= ? ORDER BY id"
    )
    return [
        Event(
            kind=kind,
            stage=stage,
            moment=Moment(wall=wall, boot=boot, boot_id=boot_id),
            data=json.loads(data),
            source=source,
            number=place,
        )
        for place, kind, stage, wall, boot, boot_id, source, data in rows(db, query, number, first)
    ]


def _active(db: sqlite3.Connection) -> Session | None:
    found = rows(db, "SELECT id FROM session WHERE active = 1")
    return _load(db, found[0][0]) if found else None


def _unknown(number: int) -> UsageError:
    return UsageError(f"There is no interview '{number}'.", next_step="List all interviews: attn-kata interview list")
