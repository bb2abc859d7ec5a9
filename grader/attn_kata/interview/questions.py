"""The questions of a round, as they are kept with the session, and whether an answer is right."""

from __future__ import annotations

import re
from typing import Any

from attn_kata import catalog, contract
from attn_kata.interview import content, follow_ups
from attn_kata.interview.session import Session
from attn_kata.rounds import napkin, review

NUMBERS, DERIVATIONS = 4, 2  # of a napkin round, of a derive round
_HOW = "For each mistake give the line and what is wrong there: 12 the softmax is over the queries"


def of_round(session: Session, place: int) -> list[dict[str, Any]]:
    """The questions of the round at `place`, drawn by the session's seed. Each has its `stage`. Raises KataFileError."""
    one = session.stages[place]
    if one.kind == "talk":
        asked = _talk(session)
    elif one.kind == "napkin":
        every = content.of_kata(one.kata).follow_ups
        asked = follow_ups.numeric(one.kata, every, seed=session.seed + place, count=NUMBERS)
    elif one.kind == "derive":
        every = content.of_kata(one.kata).follow_ups
        asked = follow_ups.derivations(one.kata, every, seed=session.seed + place, count=DERIVATIONS)
    else:
        asked = [_review(one.kata, session.spoiled[place].source)]
    return [{**question, "stage": place} for question in asked]


def judge(session: Session, place: int, text: str) -> tuple[bool | None, dict[str, Any]]:
    """Whether the answer to the question at `place` is right (None: not judged), and what is kept with it.

    Raises UsageError for what is no answer.
    """
    question = session.follow_ups[place - 1]
    if question["kind"] == "review" and text.strip():
        spoiled = session.spoiled[question["stage"]]
        lines = [line for line in re.split(r"[\n;]", text) if line.strip()]
        reviewed = review.judge(spoiled, [review.mark(line, spoiled) for line in lines])
        return reviewed.done, {"reviewed": reviewed.to_dict()}
    if question["kind"] == "numeric" and text.strip():
        judged = napkin.judge(napkin.of(question), text)
        return judged.right, {"note": judged.note} if judged.note else {}
    return follow_ups.judge(question, text), {}


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


def _review(slug: str, source: str) -> dict[str, Any]:
    kata = catalog.find(slug)
    numbered = "\n".join(f"{number:>4}  {line}".rstrip() for number, line in enumerate(source.splitlines(), 1))
    asked = contract.load(kata.prompt).text
    ask = f"A colleague wrote this for '{kata.title}'. It has one or more mistakes. {_HOW}"
    return {"kata": slug, "kind": "review", "ask": ask, "explain": "", "code": numbered, "contract": asked}
