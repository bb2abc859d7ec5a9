"""The errors for steps that a session refuses: what is refused, why, and what to do next."""

from __future__ import annotations

from attn_kata.errors import UsageError
from attn_kata.interview.session import ALLOWED, Kind, Session

DOING = {
    "asked": "ask a question",
    "began": "begin coding",
    "saved": "save",
    "ran": "run",
    "submitted": "submit",
    "advanced": "go on to the next round",
    "paused": "pause",
    "followed_up": "go on to the questions",
    "answered": "answer",
    "ticked": "tick points",
    "reviewed": "go on to the review",
    "closed": "close it",
    "hinted": "give a hint",
    "rated": "rate",
    "noted": "take a note",
}
NOW = {
    "ready": "it has not begun",
    "briefing": "it is in the briefing",
    "coding": "you are coding",
    "submitted": "this stage was submitted",
    "time_up": "the time is up",
    "follow_up": "questions are open",
    "review": "it is in the review",
    "closed": "it is closed",
    "abandoned": "it was ended early",
}
NEXT = {
    "ready": "attn-kata interview next",
    "briefing": "Begin coding: attn-kata interview next",
    "coding": "attn-kata interview submit, or attn-kata interview status",
    "submitted": "attn-kata interview next",
    "time_up": "attn-kata interview next",
    "follow_up": "attn-kata interview answer 1 TEXT, or attn-kata interview next",
    "review": "attn-kata interview show",
    "closed": "attn-kata interview show",
    "abandoned": "attn-kata interview start",
}


def unless_allowed(session: Session, kind: Kind) -> None:
    """Raises UsageError when the session's state does not allow an event of this kind."""
    if session.state not in ALLOWED[kind]:
        raise refused(session, kind)


def unless_open(session: Session) -> None:
    """Raises UsageError in a round that leaves no details open."""
    if session.round.kind not in ("write", "grow"):
        raise UsageError("This round leaves nothing open to ask about.", next_step=NEXT[session.state])


def unless_at(session: Session, stage: int | None) -> None:
    """Raises UsageError when the session is no longer at `stage`. None means any."""
    if stage is not None and session.stage != stage:
        raise UsageError(
            f"Stage {stage + 1} of interview {session.id} is over.", next_step="attn-kata interview status"
        )


def refused(session: Session, kind: Kind, doing: str = "") -> UsageError:
    """The error for an event that is not allowed now."""
    doing = doing or DOING.get(kind, "do that")
    return UsageError(
        f"You cannot {doing} in interview {session.id} now: {NOW[session.state]}.", next_step=NEXT[session.state]
    )


def time_is_up(session: Session) -> UsageError:
    """The error for a step after the end of the time."""
    return UsageError(f"The time of interview {session.id} is up.", next_step="attn-kata interview status")
