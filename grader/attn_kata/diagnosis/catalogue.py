"""The texts for every mistake, from `catalogue.toml`. Without torch, so that `attn-kata explain` is fast."""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from attn_kata.errors import KataFileError
from attn_kata.resources import katas_folder
from attn_kata.tables import Table

FILE = Path(__file__).with_name("catalogue.toml")
SIZES = frozenset({"B", "H", "T", "Tq", "Tk", "D", "Dv", "E", "Din"})  # the sizes that an explanation may use


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """One public place where a mistake was made or discussed."""

    url: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The texts for one mistake. `explanations` begin with the most exact wording; the last has no sizes."""

    id: str
    title: str
    explanations: tuple[str, ...]
    question: str
    why: str
    see: str
    seen: tuple[Sighting, ...]

    @property
    def family(self) -> str:
        """`scale` of `scale.embed_dim`."""
        return self.id.partition(".")[0]

    @property
    def plain(self) -> str:
        """The explanation without sizes."""
        return self.explanations[-1]


def load() -> dict[str, Entry]:
    """Every entry by its id: those of the catalogue, then those of single katas. Raises KataFileError with file and key."""
    entries = dict(of_file(FILE))
    for file in of_katas():
        for id, entry in of_file(file).items():
            if id in entries:
                raise KataFileError(f"{file}: '{id}' is in the catalogue already.")
            entries[id] = entry
    return entries


def of_katas() -> list[Path]:
    """The files with mistakes that only one kata knows: `katas/<slug>/mistakes.toml`, with the keys of the catalogue."""
    return sorted(katas_folder().glob("*/mistakes.toml"))


def describe(id: str, sizes: dict[str, int]) -> str:
    """The most exact explanation whose sizes are all in `sizes`, no two of them equal. Raises KeyError."""
    entry = load()[id]
    for wording in entry.explanations:
        named = {name: sizes[name] for name in _names(wording) if name in sizes}
        # "√6 = √embed_dim; the contract divides by √6" would explain nothing.
        if len(named) == len(_names(wording)) == len(set(named.values())):
            return wording.format_map(named)
    return entry.plain


@lru_cache(maxsize=64)
def of_file(file: Path) -> dict[str, Entry]:
    """The entries of one file by id. Raises KataFileError with file and key."""
    whole = Table.of_file(file)
    families = [(name, whole.table(name)) for name in whole.names()]
    return {
        f"{name}.{what}": _entry(f"{name}.{what}", family.table(what))
        for name, family in families
        for what in family.names()
    }


def _entry(id: str, table: Table) -> Entry:
    entry = Entry(
        id=id,
        title=table.text("title"),
        explanations=table.texts("explanation", at_least=1),
        question=table.text("question"),
        why=table.text("why"),
        see=table.text("see"),
        seen=tuple(_sighting(one) for one in table.tables("seen", at_least=0)),
    )
    table.nothing_else()
    for wording in entry.explanations:
        try:
            unknown = sorted(_names(wording) - SIZES)
        except ValueError as problem:
            raise table.wrong("explanation", f"has a wrong placeholder: {problem}") from problem
        if unknown:
            raise table.wrong("explanation", f"names the unknown size '{{{unknown[0]}}}'")
    if _names(entry.plain):
        raise table.wrong("explanation", "must end with a wording that names no sizes")
    return entry


def _sighting(table: Table) -> Sighting:
    sighting = Sighting(url=table.text("url"), what=table.text("what"))
    table.nothing_else()
    if not sighting.url.startswith("https://"):
        raise table.wrong("url", f"must begin with https://, not '{sighting.url}'")
    return sighting


def _names(wording: str) -> set[str]:
    """The placeholders of a wording."""
    return {name for _, name, _, _ in string.Formatter().parse(wording) if name is not None}
