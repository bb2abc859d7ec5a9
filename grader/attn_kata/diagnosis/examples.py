"""What a kata's wrong attempts show of each mistake, from `katas/<slug>/examples.toml`. Imports no torch, reads no specimen.

`attn-kata dev examples` makes the file of the rows of wrong.toml that make one mistake alone, and `dev check` compares them:

    ["scale.missing"]                          # the id
    breaks = ["values"]                        # the properties that those rows break
    row = "scale_missing"                      # the one of them with the fewest wrong lines; row and code may both be absent
    code = "scores = q @ k.transpose(-2, -1)"  # the lines that its right attempt does not have
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from attn_kata import catalog
from attn_kata.diagnosis import catalogue
from attn_kata.tables import Table


@dataclass(frozen=True, kw_only=True)
class Example:
    """What one kata's wrong attempts show of one mistake. `row` and `code` are None where all only leave lines out."""

    kata: str
    breaks: tuple[str, ...]
    row: str | None = None
    code: str | None = None


def file(folder: Path) -> Path:
    """Where the kata in `folder` keeps its examples."""
    return folder / "examples.toml"


def of_kata(folder: Path) -> dict[str, Example]:
    """The examples of one kata by the id of the mistake; none while the file is not there. Raises KataFileError."""
    if not file(folder).is_file():
        return {}
    whole = Table.of_file(file(folder))
    return {id: _example(folder.name, whole.table(id)) for id in whole.names()}


@lru_cache(maxsize=1)
def load() -> dict[str, tuple[Example, ...]]:
    """For each mistake that some attempt makes alone its examples, that of the easiest kata first. Raises KataFileError."""
    every = [of_kata(kata.folder) for kata in catalog.katas()]
    found = {id: tuple(known[id] for known in every if id in known) for id in catalogue.load()}
    return {id: examples for id, examples in found.items() if examples}


SHORT = 3  # lines that show one mistake and little else


def shown(id: str, kata: str | None = None) -> Example | None:
    """An example with lines to show, or None: that of `kata`, else that of the easiest kata with a short one."""
    known = [(example, example.code.count("\n") + 1) for example in load().get(id, ()) if example.code is not None]
    own = next((example for example, _ in known if example.kata == kata), None)
    return own or min(known, key=lambda one: max(one[1], SHORT), default=(None, 0))[0]


def breaks(id: str) -> dict[str, list[str]]:
    """The properties that a mistake breaks, each with the katas where it does."""
    found: dict[str, list[str]] = {}
    for example in load().get(id, ()):
        for name in example.breaks:
            found.setdefault(name, []).append(example.kata)
    return found


def breaking(name: str, kata: str | None = None) -> list[str]:
    """The ids of the mistakes that break a property, in `kata` or in any, in the catalogue's order."""
    chosen = {id: [one for one in known if kata in (None, one.kata)] for id, known in load().items()}
    return [id for id, known in chosen.items() if any(name in example.breaks for example in known)]


def _example(kata: str, table: Table) -> Example:
    shows = table.has("row") or table.has("code")
    example = Example(
        kata=kata,
        breaks=table.texts("breaks", at_least=1),
        row=table.text("row") if shows else None,
        code=table.text("code") if shows else None,
    )
    table.nothing_else()
    return example
