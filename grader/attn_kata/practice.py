"""What to practise next: spaced repetition of the graded katas by FSRS (the algorithm of py-fsrs, unchanged).

A sitting is a series of full gradings of one kata with less than two hours between them. It counts as one review: Good
if the first grading passed, Hard if a later one passed, Again if none passed. Hints do not count: the next sitting shows
whether you remember. The rounds of a kata (bug hunts, napkin numbers, reviews) are cards of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from attn_kata.history import Graded, History

if TYPE_CHECKING:
    from fsrs import Rating

SITTING = timedelta(hours=2)


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A kata to practise, or one of its rounds. `due` is its next date by FSRS; `recalled` is FSRS's estimate that you
    still know it. `failing` is what failed last time: properties, or what went wrong in the round.
    """

    kata: str
    round: str
    due: datetime
    recalled: float
    failing: tuple[str, ...]

    def is_due(self, now: datetime) -> bool:
        return self.due <= now


def what_next(
    history: History,
    *,
    rounds: Sequence[Graded] = (),
    foundations: Mapping[str, Collection[str]] | None = None,
    now: datetime | None = None,
    limit: int = 3,
) -> list[Suggestion]:
    """What to practise next: first what failed the last time, then by due date.

    Only katas and `rounds` that were graded before; empty if none was. By `foundations` (of each kata, what it builds on)
    nobody is sent back to a kata after a pass of one that builds on it.
    """
    every = history.gradings()
    current = [one for one in every if not _is_outgrown(one.kata, every, foundations or {})]
    return schedule([*current, *rounds], now=now or datetime.now(timezone.utc))[:limit]


def _is_outgrown(kata: str, every: Sequence[Graded], foundations: Mapping[str, Collection[str]]) -> bool:
    """Whether a kata that builds on `kata` was passed after the last grading of `kata`."""
    last = max((one.at for one in every if one.kata == kata), default=None)
    return last is not None and any(
        one.passed and one.at >= last and kata in foundations.get(one.kata, ()) for one in every
    )


def schedule(every: Sequence[Graded], *, now: datetime) -> list[Suggestion]:
    """One suggestion for each graded kata and round, in the order to practise them."""
    from fsrs import Card, Scheduler

    # No learning steps of minutes: a kata takes longer than a flash card. No fuzz: the same history, the same schedule.
    scheduler = Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
    made = []
    for (kata, name), sittings in _sittings(every).items():
        card = Card(card_id=0, due=sittings[0][0].at)
        for sitting in sittings:
            card, _ = scheduler.review_card(card, _rating(sitting), sitting[-1].at)
        recalled = scheduler.get_card_retrievability(card, now)
        failing = sittings[-1][-1].failed
        made.append(Suggestion(kata=kata, round=name, due=card.due, recalled=round(recalled, 3), failing=failing))
    return sorted(made, key=lambda one: (not one.failing, one.due, one.kata, one.round))


def _sittings(every: Iterable[Graded]) -> dict[tuple[str, str], list[list[Graded]]]:
    made: dict[tuple[str, str], list[list[Graded]]] = {}
    for one in every:
        sittings = made.setdefault((one.kata, one.round), [])
        if sittings and one.at - sittings[-1][-1].at < SITTING:
            sittings[-1].append(one)
        else:
            sittings.append([one])
    return made


def _rating(sitting: Sequence[Graded]) -> Rating:
    from fsrs import Rating

    if sitting[0].passed:
        return Rating.Good
    return Rating.Hard if any(one.passed for one in sitting) else Rating.Again
