"""The scorecard: eight dimensions from 1 to 4, each with rule and evidence, and an overall result with its rule.

Only measurements decide. Points that candidates tick in their own free answers are shown separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attn_kata.interview import dimensions
from attn_kata.interview.review import Review

OVERALL_RULE = (
    "strong yes: every dimension 3 or more, Correctness 4, mean 3.5 or more; yes: Correctness 3 or more, mean 3 or "
    "more, at most one dimension at 1; strong no: Correctness 1 and mean below 2; no: everything else."
)
SPREAD_OVER = 5


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One score. `rule` says how the score follows from the `evidence`."""

    name: str
    score: int
    evidence: tuple[str, ...]
    rule: str


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The scores of one dimension over the last sessions, the newest last."""

    name: str
    scores: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """A session's scores."""

    session: int
    overall: str
    mean: float
    dimensions: tuple[Dimension, ...]
    self_reported: tuple[str, ...]
    interviewer: tuple[str, ...]  # what the interviewer rated and noted, in partner mode
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The scorecard for JSON."""
        return {
            "overall": self.overall,
            "rule": OVERALL_RULE,
            "mean": self.mean,
            "dimensions": [
                {"name": one.name, "score": one.score, "evidence": list(one.evidence), "rule": one.rule}
                for one in self.dimensions
            ],
            "self_reported": list(self.self_reported),
            "interviewer": list(self.interviewer),
            "notes": list(self.notes),
        }


def score(review: Review, *, hints: int = 0, references: int = 0) -> Scorecard:
    """Judge a session. `hints` and `references` are the numbers given and shown during the session."""
    judged = tuple(
        Dimension(name=name, score=points, evidence=tuple(evidence), rule=rule)
        for name, (points, evidence, rule) in {
            "Clarification": dimensions.clarification(review),
            "Correctness": dimensions.correctness(review),
            "Gradients and numerics": dimensions.numerics(review),
            "Speed": dimensions.speed(review),
            "Testing discipline": dimensions.testing(review),
            "Code quality": dimensions.code_quality(review),
            "Depth": dimensions.depth(review),
            "Independence": dimensions.independence(review, hints=hints, references=references),
        }.items()
    )
    mean = round(sum(one.score for one in judged) / len(judged), 2)
    return Scorecard(
        session=review.session.id,
        overall=overall(judged, mean),
        mean=mean,
        dimensions=judged,
        self_reported=tuple(dimensions.self_reported(review)),
        interviewer=tuple(_interviewer(review)),
        notes=tuple(_notes(review)),
    )


def overall(judged: Sequence[Dimension], mean: float) -> str:
    """The overall result, by OVERALL_RULE."""
    correct = next(one.score for one in judged if one.name == "Correctness")
    if correct == 4 and mean >= 3.5 and min(one.score for one in judged) >= 3:
        return "strong yes"
    if correct >= 3 and mean >= 3 and sum(one.score == 1 for one in judged) <= 1:
        return "yes"
    if correct == 1 and mean < 2:
        return "strong no"
    return "no"


def spread(kept: Mapping[int, Mapping[str, Any]], *, until: int) -> tuple[Spread, ...]:
    """The scores of the last five sessions up to `until`, by dimension: the spread says more than one score."""
    last = [kept[number] for number in sorted(kept) if number <= until][-SPREAD_OVER:]
    names = dict.fromkeys(one["name"] for card in last for one in card["dimensions"])
    return tuple(
        Spread(
            name=name,
            scores=tuple(one["score"] for card in last for one in card["dimensions"] if one["name"] == name),
        )
        for name in names
    )


def _interviewer(review: Review) -> Iterable[str]:
    """The ratings and the notes of the interviewer. They do not change the measured scores."""
    for line, rating in review.session.ratings.items():
        yield f"{line}: {rating['score']} of 4" + (f". {rating['note']}" if rating["note"] else "")
    yield from (f"Note: {text}" for text in review.session.notes)


def _notes(review: Review) -> Iterable[str]:
    session = review.session
    if session.mode == "coached":
        yield "Coached: you saw findings after every run."
    if session.listed:
        yield "You saw the list of clarifying questions. Real interviews have none."
    if session.state == "abandoned":
        yield "The interview was ended early."
    for one in review.taken:
        if one.how == "late":
            yield f"{one.kata}: the file was saved only after the end; it was still graded."
        elif one.how in ("not on the disk", "changed after the end"):
            yield f"{one.kata}: the file was {one.how}; the newest version saved before the end was graded."
    open_ones = [one.kata for place, one in enumerate(session.stages) if one.written and place not in session.begun]
    if open_ones:
        yield f"Not started: {', '.join(open_ones)}."
