"""The questions of a round, as they are kept with the session: of a talk, a napkin, a review."""

from __future__ import annotations

from typing import Any

from attn_kata.interview import content, follow_ups
from attn_kata.interview.session import Session


def of_round(session: Session, place: int) -> list[dict[str, Any]]:
    """The questions of the round at `place`, drawn by the session's seed. Each has its `stage`. Raises KataFileError."""
    asked = _talk(session) if session.stages[place].kind == "talk" else _napkin(session, place)
    return [{**one, "stage": place} for one in asked]


def _talk(session: Session) -> list[dict[str, Any]]:
    """About every kata that was begun; each of them once."""
    entered = [one.kata for one in session.stages[: session.stage + 1] if one.kata]
    slugs = list(dict.fromkeys(entered))
    count = follow_ups.ALONE if len(slugs) == 1 else follow_ups.TOGETHER
    return [
        question
        for slug in slugs
        for question in follow_ups.draw(slug, content.of_kata(slug).follow_ups, seed=session.seed, count=count)
    ]


def _napkin(session: Session, place: int) -> list[dict[str, Any]]:
    slug = session.stages[place].kata
    return follow_ups.numbers(slug, content.of_kata(slug).follow_ups, seed=session.seed + place)
