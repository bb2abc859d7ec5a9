"""Spoiled code: a right attempt of a kata with known mistakes edited in. What bug hunts and reviews are made of.

The edits of a kata's `wrong.toml` are tried on every right attempt: an edit whose old text occurs there exactly once
applies. So a mistake comes in many styles. Which mistakes the result makes is not believed but graded: only code whose
diagnosis is exactly the mistakes that were edited in is used. Mistakes that cancel or hide one another do not pass this.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import io
import random
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attn_kata import specimens
from attn_kata.catalog import Kata
from attn_kata.errors import KataFileError, UsageError
from attn_kata.specimens import Collision, Specimen

if TYPE_CHECKING:
    from attn_kata.report.model import Report

MOST_BUGS = 4
TRIES = 30  # gradings at most, for a number of mistakes that was asked for
TRIES_DRAWN = 12  # for a drawn number: fewer mistakes will do
_FAILURES = 4  # gradings that prove nothing, before another style is drawn
_DRAWS = 100  # of a style; where nothing fits, a draw costs no grading
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
    """Proven code with `bugs` mistakes (1 to MOST_BUGS), or with a drawn number of them or fewer, and its grading.

    The same seed gives the same code. Raises UsageError where no `bugs` mistakes were found that go together.
    """
    chance = random.Random(int.from_bytes(hashlib.sha256(f"{seed} {kata.slug} {bugs}".encode()).digest()[:8], "big"))
    count = bugs or chance.choice(_COUNTS)
    best: tuple[Spoiled, Report] | None = None
    tries = TRIES if bugs else TRIES_DRAWN
    for rows in _draws(kata, count, chance):
        chosen: list[Specimen] = []
        failures = 0
        for row in rows:  # mistake by mistake: one that cancels or hides another is left out, and the next is tried
            spoiled = _spoiled(kata, seed, [*chosen, row])
            if spoiled is None:
                continue
            report = grade(kata.slug, spoiled.source.encode())
            tries -= 1
            if is_proven(spoiled, report):
                chosen.append(row)
                if best is None or len(chosen) > len(best[0].bugs):
                    best = spoiled, report
            else:
                failures += 1
            if len(chosen) == count or failures == _FAILURES or not tries:
                break
        if not tries or (best is not None and len(best[0].bugs) == count):
            break
    if best is not None and (bugs is None or len(best[0].bugs) == bugs):
        return best
    fewer = len(best[0].bugs) if best else (bugs or count) - 1
    raise UsageError(
        f"No attempt at {kata.slug} with {bugs or count} mistakes was found for seed {seed}.",
        next_step=f"With fewer: --bugs {fewer}. Or take another --seed or kata"
        if fewer
        else "Take another --seed or kata",
    )


def is_proven(spoiled: Spoiled, report: Report) -> bool:
    """Whether the grading of `spoiled` names its mistakes, all of them and nothing else."""
    named = [frozenset(mistake.id for mistake in one.mistakes) for one in report.diagnosis]
    return report.outcome == "failed" and named == [spoiled.mistakes] and (report.explained or len(spoiled.bugs) == 1)


def _draws(kata: Kata, count: int, chance: random.Random) -> Iterator[list[Specimen]]:
    """Rows of one style with different mistakes, in an order to try them, drawn again and again."""
    every = specimens.read(kata.folder)
    styles = [one.base for one in every if one.kind == "right"]
    rows = [one for one in every if one.kind == "wrong" and one.edits and len(one.mistakes) == 1]
    if count > 1:  # a wrong shape hides what else is wrong
        rows = [row for row in rows if row.breaks.isdisjoint(kata.shapes)] or rows
    by_mistake: dict[str, list[Specimen]] = {}
    for row in rows:
        by_mistake.setdefault(min(row.mistakes), []).append(row)
    for _ in range(_DRAWS if rows else 0):
        order = [chance.choice(by_mistake[id]) for id in chance.sample(list(by_mistake), len(by_mistake))]
        # Half of the draws take a style that fits the first mistake: a few mistakes fit into every style, and most into few.
        fitting = styles if chance.random() < 0.5 else [style for style in styles if _fits(order[0], style)]
        style = chance.choice(fitting or styles)
        moved = [replace(row, base=style) for row in order if _fits(row, style)]
        if _most_together(moved, count) == count:
            yield moved


def _most_together(rows: Sequence[Specimen], most: int) -> int:
    """How many of the rows go together by their texts, taken in turn, up to `most`."""
    chosen: list[Specimen] = []
    for row in rows:
        with contextlib.suppress(Collision, KataFileError):
            specimens.combined([*chosen, row])
            chosen.append(row)
        if len(chosen) == most:
            break
    return len(chosen)


def _fits(row: Specimen, style: Path) -> bool:
    try:
        specimens.combined([replace(row, base=style)])
    except KataFileError:  # this style has no such text
        return False
    return True


def _spoiled(kata: Kata, seed: int, rows: Sequence[Specimen]) -> Spoiled | None:
    """The code with the mistakes of these rows of one style. None where their edits do not go together, or leave no Python."""
    base = specimens.source_of(rows[0].base)
    try:
        source = _told_nothing(specimens.combined(rows), base)
        bugs = tuple(_bug(row, rows, source, base) for row in rows)
        compile(source, "spoiled", "exec")
    except (Collision, KataFileError):  # two change the same text, or this style has no such text
        return None
    except (SyntaxError, tokenize.TokenError):  # the text is something else in this style
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
