"""Spoiled code: a right attempt of a kata with known mistakes edited in. What bug hunts and reviews are made of.

The edits of a kata's `wrong.toml` are tried on every right attempt: an edit whose old text occurs there exactly once
applies. So a mistake comes in many styles. Which mistakes the result makes is not believed but graded: only code whose
diagnosis is exactly the mistakes that were edited in is used. Mistakes that cancel or hide one another do not pass this.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import random
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attn_kata import specimens
from attn_kata.catalog import Kata
from attn_kata.errors import KataFileError, UsageError
from attn_kata.specimens import Collision, Specimen

if TYPE_CHECKING:
    from attn_kata.report.model import Report

MOST_BUGS = 4
TRIES = 20  # gradings before fewer mistakes are tried, or another seed is asked for
_DRAWS = 400  # draws of a style and rows that may not fit together; they cost no grading
_COUNTS = (1, 2, 2, 3)  # how many mistakes there are, if nobody says

Grade = Callable[[str, bytes], "Report"]  # a kata's slug and a source


@dataclass(frozen=True, kw_only=True)
class Bug:
    """One mistake that was edited in. `lines` are the lines of the spoiled source that it changed, from 1.

    `wrong` are the texts that the edits wrote, and `right` what was there before.
    """

    mistake: str
    lines: tuple[int, ...]
    wrong: tuple[str, ...]
    right: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Spoiled:
    """Code with known mistakes. `style` is the name of the right attempt, and `base` its source."""

    kata: str
    seed: int
    style: str
    base: str
    source: str
    bugs: tuple[Bug, ...]

    @property
    def mistakes(self) -> frozenset[str]:
        """The ids of the mistakes."""
        return frozenset(bug.mistake for bug in self.bugs)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**vars(self), "bugs": [vars(bug) for bug in self.bugs]}

    @classmethod
    def from_dict(cls, body: dict[str, Any]) -> Spoiled:
        """What `to_dict` gave, also after JSON. Raises TypeError, KeyError or AttributeError for anything else."""
        bugs = tuple(
            Bug(mistake=bug["mistake"], lines=tuple(bug["lines"]), wrong=tuple(bug["wrong"]), right=tuple(bug["right"]))
            for bug in body["bugs"]
        )
        return cls(**{**body, "bugs": bugs})


def make(kata: Kata, *, seed: int, bugs: int | None, grade: Grade) -> tuple[Spoiled, Report]:
    """The first proven code of this seed, with `bugs` mistakes (1 to MOST_BUGS) or a drawn number, and its grading.

    The same seed gives the same code. Raises UsageError where no `bugs` mistakes of the kata go together.
    """
    wanted = bugs or _chance(kata, seed, "count").choice(_COUNTS)
    for count in [wanted] if bugs else range(wanted, 0, -1):
        for spoiled in islice(candidates(kata, seed=seed, bugs=count), TRIES):
            report = grade(kata.slug, spoiled.source.encode())
            if is_proven(spoiled, report):
                return spoiled, report
    said = "1 mistake" if bugs == 1 else f"{wanted} mistakes"
    raise UsageError(
        f"No attempt at {kata.slug} with {said} was found for seed {seed}.",
        next_step="Ask for fewer with --bugs, or take another --seed or another kata",
    )


def candidates(kata: Kata, *, seed: int, bugs: int) -> Iterator[Spoiled]:
    """Code with `bugs` different mistakes that the edits allow, each once, in an order drawn by the seed. Not proven yet."""
    every = specimens.read(kata.folder)
    rows = [one for one in every if one.kind == "wrong" and one.edits and len(one.mistakes) == 1]
    if bugs > 1:  # a wrong shape hides what else is wrong
        rows = [row for row in rows if row.breaks.isdisjoint(kata.shapes)] or rows
    styles = [one.base for one in every if one.kind == "right"]
    chance = _chance(kata, seed, str(bugs))
    seen: set[str] = set()
    for _ in range(_DRAWS):
        chosen = _fitting(chance.choice(styles), chance.sample(rows, len(rows)), bugs)
        spoiled = _spoiled(kata, seed, chosen) if len(chosen) == bugs else None
        if spoiled is not None and spoiled.source not in seen:
            seen.add(spoiled.source)
            yield spoiled


def is_proven(spoiled: Spoiled, report: Report) -> bool:
    """Whether the grading of `spoiled` names its mistakes, all of them and nothing else."""
    named = [frozenset(mistake.id for mistake in one.mistakes) for one in report.diagnosis]
    return report.outcome == "failed" and named == [spoiled.mistakes] and (report.explained or len(spoiled.bugs) == 1)


def _chance(kata: Kata, seed: int, what: str) -> random.Random:
    return random.Random(int.from_bytes(hashlib.sha256(f"{seed} {kata.slug} {what}".encode()).digest()[:8], "big"))


def _fitting(base: Path, rows: Sequence[Specimen], count: int) -> list[Specimen]:
    """The first `count` rows that apply to `base` together, with different mistakes; fewer where there are no more."""
    chosen: list[Specimen] = []
    for row in rows:
        if len(chosen) == count:
            break
        moved = replace(row, base=base)
        if any(moved.mistakes & one.mistakes for one in chosen):
            continue
        try:
            specimens.combined([*chosen, moved])
        except (Collision, KataFileError):  # two change the same text, or this style has no such text
            continue
        chosen.append(moved)
    return chosen


def _spoiled(kata: Kata, seed: int, rows: Sequence[Specimen]) -> Spoiled | None:
    """The code with the mistakes of these rows; None where it is no Python, or a mistake leaves no line to mark."""
    base = specimens.source_of(rows[0].base)
    try:
        source = _told_nothing(specimens.combined(rows), base)
        bugs = tuple(_bug(row, rows, source, base) for row in rows)
        compile(source, "spoiled", "exec")
    except (SyntaxError, tokenize.TokenError):  # text fitted that is something else in this style
        return None
    if not all(bug.lines for bug in bugs):
        return None
    return Spoiled(kata=kata.slug, seed=seed, style=rows[0].base.stem, base=base, source=source, bugs=bugs)


def _bug(row: Specimen, rows: Sequence[Specimen], source: str, base: str) -> Bug:
    others = [one for one in rows if one is not row]
    without = _told_nothing(specimens.combined(others), base) if others else base
    (mistake,) = row.mistakes
    return Bug(
        mistake=mistake,
        lines=_changed(without, source),
        wrong=tuple(edit.new for edit in row.edits),
        right=tuple(edit.old for edit in row.edits),
    )


def _changed(before: str, after: str) -> tuple[int, ...]:
    """The lines of `after`, from 1, that `before` does not have; for lines that are gone, the two around the gap."""
    old, new = before.splitlines(), after.splitlines()
    found: set[int] = set()
    for kind, _, _, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "delete":
            found.update(line for line in (first, first + 1) if 1 <= line <= len(new))
        elif kind != "equal":
            found.update(number for number in range(first + 1, last + 1) if new[number - 1].strip())
    return tuple(sorted(found))


def _told_nothing(source: str, base: str) -> str:
    """`source` without the comments that `base` does not have: they may name the mistake. Raises for what is no Python."""
    known = {text for _, text in _comments(base)}
    lines = source.splitlines(keepends=True)
    gone = []
    for (row, column), text in _comments(source):
        if text not in known:
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
            gone += [row - 1] if lines[row - 1] == "\n" else []
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def _comments(source: str) -> list[tuple[tuple[int, int], str]]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [(token.start, token.string) for token in tokens if token.type == tokenize.COMMENT]
