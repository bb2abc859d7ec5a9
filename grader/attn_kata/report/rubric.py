"""The rubric: what a mistake costs, and which groups of properties count. `rubric.toml` beside this file is the default.

A rubric of a teacher has only the keys that differ from the default. Its format is described in `rubric.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from attn_kata.errors import KataFileError, UsageError
from attn_kata.tables import Table

FILE = Path(__file__).with_name("rubric.toml")
_DEFAULT = "default"
_OTHERS = "values"  # the group of a property that no pattern fits


@dataclass(frozen=True, kw_only=True)
class Group:
    """Properties that count once together. `patterns` are as in a shell."""

    name: str
    title: str
    weight: float
    patterns: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Whether a pattern fits the property's name."""
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """What each mistake takes from 100 points (by id, by family, or by default), and the groups in the order of matching."""

    mistakes: dict[str, float]
    ready_made: float
    groups: tuple[Group, ...]

    def takes(self, mistake: str) -> float:
        """The points that this mistake costs."""
        for name in (mistake, mistake.partition(".")[0]):
            if name in self.mistakes:
                return self.mistakes[name]
        return self.mistakes[_DEFAULT]

    def group_of(self, name: str) -> Group:
        """The group of the property `name`."""
        others = next(group for group in self.groups if group.name == _OTHERS)
        return next((group for group in self.groups if group.has(name)), others)


@cache
def default() -> Rubric:
    """The rubric of `rubric.toml`."""
    return _changed(Rubric(mistakes={}, ready_made=0, groups=()), Table.of_file(FILE))


def load(path: Path, mistakes: Iterable[str]) -> Rubric:
    """The default with the changes in the file `path`. `mistakes` are the ids that there are. Raises UsageError."""
    try:
        rubric = _changed(default(), Table.of_file(path))
    except KataFileError as problem:
        raise UsageError(problem.what, next_step="See what it can say: attn-kata class --show-rubric") from problem
    ids = set(mistakes)
    known = {*ids, *(id.partition(".")[0] for id in ids), _DEFAULT}
    for name in rubric.mistakes:
        if name not in known:
            raise UsageError(
                f"{path}: there is no mistake '{name}'.{_meant(name, known)}", next_step="See them: attn-kata explain"
            )
    return rubric


def _changed(rubric: Rubric, table: Table) -> Rubric:
    """The rubric with the keys of a table. Raises KataFileError."""
    mistakes = table.table("mistakes")
    ready_made = table.table("ready_made")
    groups = table.table("groups")
    table.nothing_else()
    found = {group.name: group for group in rubric.groups}
    for name, each in groups.named_tables():
        before = found.get(name)
        found[name] = Group(
            name=name,
            title=each.text("title", before.title if before else name.replace("_", " ")),
            weight=each.number("weight", least=0) if each.has("weight") or before is None else before.weight,
            patterns=each.texts("properties", at_least=1) if each.has("properties") or not before else before.patterns,
        )
        each.nothing_else()
    score = ready_made.number("score", least=0) if ready_made.has("score") else rubric.ready_made
    ready_made.nothing_else()
    if score > 100:
        raise ready_made.wrong("score", "must be 100 or less")
    # A group that the default does not have comes first: its patterns are more exact than the default's.
    added = [group for name, group in found.items() if name not in {each.name for each in rubric.groups}]
    kept = [found[group.name] for group in rubric.groups]
    if not any(group.weight for group in found.values()):
        raise groups.wrong("weight", "must not be 0 for every group")
    return replace(
        rubric,
        mistakes={**rubric.mistakes, **_points(mistakes)},
        ready_made=score,
        groups=(*added, *kept),
    )


def _points(mistakes: Table) -> dict[str, float]:
    """The points of each mistake. An id may be written with quotes or without: then TOML makes a table of its family."""
    found = {}
    for name in mistakes.names():
        if not mistakes.is_table(name):
            found[name] = mistakes.number(name, least=0)
            continue
        family = mistakes.table(name)
        found.update({f"{name}.{what}": family.number(what, least=0) for what in family.names()})
    return found


def _meant(name: str, known: set[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""
