"""A review: a colleague's attempt, read only. Mark lines and say what is wrong, before anything runs; then see.

The lines are judged by the edits. A name (`scale.missing`, or its family `scale`) is judged too. What is said in other
words is for the reviewer to compare with the mistake: `Found.named` is None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attn_kata.errors import UsageError
from attn_kata.rounds.spoiled import Bug, Spoiled

NEAR = 1  # a mark this many lines beside the mistake finds it too
LONGEST = 500  # characters of what a mark says
MOST_MARKS = 20
_MARK = re.compile(r"(?:lines?\s+)?(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*[:,.]?\s+(\S.*)", re.S | re.I)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Lines `first` to `last`, and what the reviewer says of them."""

    first: int
    last: int
    said: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """A mistake that a mark is at. `named` is True or False where the mark names a mistake, None for other words."""

    bug: Bug
    mark: Mark
    named: bool | None


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """What a review found. `wrong` are the marks at no mistake."""

    found: tuple[Found, ...]
    missed: tuple[Bug, ...]
    wrong: tuple[Mark, ...]

    @property
    def done(self) -> bool:
        """Whether every mistake was marked, none under another one's name, and nothing else was."""
        return not self.missed and not self.wrong and all(one.named is not False for one in self.found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: mistakes by id."""
        return {
            "found": [
                {"mistake": one.bug.mistake, "lines": list(one.bug.lines), "said": one.mark.said, "named": one.named}
                for one in self.found
            ],
            "missed": [{"mistake": bug.mistake, "lines": list(bug.lines)} for bug in self.missed],
            "wrong": [{"first": mark.first, "last": mark.last, "said": mark.said} for mark in self.wrong],
        }


def mark(text: str, spoiled: Spoiled) -> Mark:
    """`12 divides by E`, `12-14: scale.embed_dim`. Raises UsageError."""
    example = "Type the line, then what is wrong there, for example: 12 the softmax is over the queries"
    written = _MARK.fullmatch(text.strip())
    if written is None:
        alone = text.strip().isdecimal()
        what = "says no mistake" if alone else "does not begin with a line"
        raise UsageError(f"'{_short(text)}' {what}.", next_step=example)
    first, last = int(written[1]), int(written[2] or written[1])
    count = len(spoiled.source.splitlines())
    if not 1 <= first <= last <= count:
        lines = f"{first}" if first == last else f"{first}-{last}"
        raise UsageError(f"There is no line '{lines}': the code has {count} lines.", next_step=example)
    if len(written[3]) > LONGEST:
        raise UsageError(f"A mark has at most {LONGEST} characters, not {len(written[3])}.", next_step=example)
    return Mark(first=first, last=last, said=written[3])


def judge(spoiled: Spoiled, marks: Sequence[Mark]) -> Reviewed:
    """Which mistakes the marks are at. Each mark finds at most one mistake, the nearest; one that names it goes first."""
    ways = sorted(
        (_rank(spoiled, bug, one), at, number)
        for at, bug in enumerate(spoiled.bugs)
        for number, one in enumerate(marks)
        if _distance(bug, one) <= NEAR
    )
    of: dict[int, int] = {}  # the mistake's place: the mark's
    for _, at, number in ways:
        if at not in of and number not in of.values():
            of[at] = number
    found = [
        Found(bug=bug, mark=marks[of[at]], named=_named(spoiled, bug, marks[of[at]]))
        for at, bug in enumerate(spoiled.bugs)
        if at in of
    ]
    # Two marks at one mistake are one finding said twice, not a mistake that is not there.
    twice = {number for number, one in enumerate(marks) if any(_distance(bug, one) <= NEAR for bug in spoiled.bugs)}
    return Reviewed(
        found=tuple(found),
        missed=tuple(bug for at, bug in enumerate(spoiled.bugs) if at not in of),
        wrong=tuple(one for number, one in enumerate(marks) if number not in of.values() and number not in twice),
    )


def _rank(spoiled: Spoiled, bug: Bug, one: Mark) -> tuple[int, int]:
    named = _named(spoiled, bug, one)
    return (0 if named else 2 if named is False else 1), _distance(bug, one)


def _distance(bug: Bug, one: Mark) -> int:
    """How many lines there are between a mark and the lines of a mistake; 0 if it is on one of them."""
    return min(max(one.first - line, line - one.last, 0) for line in bug.lines)


def _named(spoiled: Spoiled, bug: Bug, one: Mark) -> bool | None:
    """Whether the mark names this mistake by id or by family; None if it names none."""
    words = set(re.findall(r"\w+\.\w+", one.said)) or {one.said.strip().lower()}
    if bug.mistake in words or bug.mistake.partition(".")[0] in words:
        return True
    others = spoiled.mistakes | {id.partition(".")[0] for id in spoiled.mistakes}
    return False if words & others or re.fullmatch(r"[a-z]+\.\w+", one.said.strip()) else None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
