"""For each mistake an attempt that makes it and nothing else, from `examples.toml`. Imports no torch."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from attn_kata import specimens
from attn_kata.diagnosis import catalogue
from attn_kata.resources import katas_folder
from attn_kata.specimens import Specimen
from attn_kata.tables import Table

FILE = Path(__file__).with_name("examples.toml")


@dataclass(frozen=True, kw_only=True)
class Example:
    """A row of a kata's wrong.toml that makes one mistake. `breaks` has what the mistake breaks in any kata."""

    kata: str
    name: str
    breaks: tuple[str, ...]

    def specimen(self) -> Specimen:
        """The row. Raises KataFileError where there is none."""
        return specimens.row(katas_folder() / self.kata, self.name)


@lru_cache(maxsize=1)
def load() -> dict[str, Example]:
    """The example of each mistake that has one, by the mistake's id. Raises KataFileError that names file and key."""
    shared = {
        f"{family}.{what}": _example(table)
        for family, mistakes in Table.of_file(FILE).named_tables()
        for what, table in mistakes.named_tables()
    }
    return {**shared, **_of_katas()}


def _of_katas() -> dict[str, Example]:
    """The examples of mistakes that only one kata knows: the first of its wrong attempts that makes the mistake alone."""
    found: dict[str, Example] = {}
    for file in catalogue.of_katas():
        own = catalogue.of_file(file)
        for specimen in specimens.read(file.parent) if own else ():
            for id in specimen.mistakes & own.keys():
                if specimen.mistakes == {id} and specimen.edits and id not in found:
                    breaks = tuple(sorted(specimen.breaks))
                    found[id] = Example(kata=file.parent.name, name=specimen.name, breaks=breaks)
    return {id: found[id] for file in catalogue.of_katas() for id in catalogue.of_file(file) if id in found}


def wrong_lines(specimen: Specimen) -> str:
    """The lines of a wrong attempt that its base does not have, without imports. Empty where lines are only left out."""
    before, after = specimens.source_of(specimen.base).splitlines(), specimen.source().splitlines()
    added = [line[2:] for line in difflib.ndiff(before, after) if line.startswith("+ ") and line[2:].strip()]
    return textwrap.dedent("\n".join(line for line in added if not line.startswith(("import ", "from "))))


def _example(table: Table) -> Example:
    kata, separator, name = table.text("example").partition("/")
    if not (kata and separator and name):
        raise table.wrong("example", "must be kata/name")
    example = Example(kata=kata, name=name, breaks=table.texts("breaks", at_least=1))
    table.nothing_else()
    return example
