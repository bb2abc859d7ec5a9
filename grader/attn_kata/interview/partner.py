"""Partner mode: what an interviewer does at a session. The candidate's own steps are in `control`."""

from __future__ import annotations

from collections.abc import Iterable

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.interview.control import Desk, change
from attn_kata.interview.moments import Moment
from attn_kata.interview.session import Session
from attn_kata.interview.store import Entry, entry


def give_hint(desk: Desk, number: int) -> Session:
    """The interviewer gives the next hint of this stage's kata. Raises UsageError after the last one."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        given = sum(1 for stage, _ in session.hints if stage == session.stage)
        if given >= len(catalog.find(session.kata).hints):
            raise UsageError("There are no more hints.", next_step="Help in your own words")
        yield entry(session, now, "hinted", hint=given + 1)

    return change(desk, number, decide, needs="hinted")


def rate(desk: Desk, number: int, line: str, score: int, note: str) -> Session:
    """The interviewer's score (1 to 4) for a line of the rubric, with a note. A later one replaces it."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        yield entry(session, now, "rated", line=line, score=score, note=note)

    return change(desk, number, decide, needs="rated")


def note(desk: Desk, number: int, text: str) -> Session:
    """A note of the interviewer."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        yield entry(session, now, "noted", text=text)

    return change(desk, number, decide, needs="noted")
