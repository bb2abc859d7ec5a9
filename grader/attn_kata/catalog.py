'''The katas as their folders describe them, in `katas/<slug>/kata.toml`, read strictly. Folders are discovered.

The format of `kata.toml`. Every key is required unless marked optional; an error names file and key. What comes before
`contract` is read by itself for `list`, which has no need of the rest and does not wait for it:

    title = "Multi-head attention"   # what `list` and the stub call it
    level = 3                        # 1 and up; `list` groups by it
    minutes = 35                     # what an interview would give for it
    summary = "..."                  # one line, at most 60 characters, for `list`
    contract = """..."""             # the contract in full, as the stub states it; lines of at most 100 characters
    hints = ["...", "...", "..."]    # three or more, from a nudge to nearly there; the last is still not the code
    smoke = """..."""                # the body of the stub's own check of shapes: Python that prints

    [[entry]]                        # one for each name that the hidden tests call
    kind = "function"
    name = "scaled_dot_product_attention"
    doc = "..."                      # its docstring
    signature = "q: Tensor, k: Tensor, v: Tensor"     # annotated
    returns = "Tensor"               # optional, "Tensor" when absent
    [[entry.step]]                   # one or more: the TODOs
    todo = "..."                     # what to do: shown by `standard` and `guided`
    detail = "..."                   # optional, how to think of it: shown by `guided`; not the code
    shape = "(..., Tq, Tk)"          # optional, the shape after this step: shown by `guided`

    [[entry]]
    kind = "class"                   # an nn.Module
    name = "MultiHeadAttention"
    doc = "..."
    [[entry.method]]                 # `__init__` first (signature without self)
    name = "forward"
    doc = "..."                      # optional
    signature = "x: Tensor, mask: Tensor | None = None"
    returns = "Tensor"               # optional, "Tensor" when absent and "None" for __init__
    [[entry.method.step]]            # as entry.step

Texts that go into docstrings (`title`, `contract`, `doc`) hold no backslash and no three double quotes in a row.
`interview.toml` beside it belongs to the interview and is not read here.
'''

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, TypeVar

from attn_kata.errors import KataFileError, UsageError
from attn_kata.resources import katas_folder, solutions_folder
from attn_kata.tables import Table

_SLUG = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


_O = TypeVar("_O", bound="Outline")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One TODO of a stub."""

    todo: str
    detail: str
    shape: str


@dataclass(frozen=True, kw_only=True)
class Method:
    """One method of a class that the candidate writes; `signature` without self."""

    name: str
    doc: str
    signature: str
    returns: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One name that the hidden tests call. A function has signature, returns and steps; a class has methods."""

    kind: Literal["function", "class"]
    name: str
    doc: str
    signature: str
    returns: str
    steps: tuple[Step, ...]
    methods: tuple[Method, ...]


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What `list` says of a kata."""

    slug: str
    title: str
    level: int
    minutes: int
    summary: str


@dataclass(frozen=True, kw_only=True)
class Kata(Outline):
    """One kata, as `kata.toml` says."""

    folder: Path
    contract: str
    hints: tuple[str, ...]
    smoke: str
    entries: tuple[Entry, ...]

    @property
    def prompt(self) -> Path:
        """`prompt.md`: what to build, in the words of the contract."""
        return self.folder / "prompt.md"

    @property
    def solution(self) -> Path:
        """The reference, `solutions/<slug>.py`."""
        return solutions_folder() / f"{self.slug}.py"


def slugs() -> list[str]:
    """Every kata's slug, in alphabetical order."""
    return sorted(toml.parent.name for toml in katas_folder().glob("*/kata.toml"))


def katas() -> list[Kata]:
    """Every kata, in the order of `list`: by level, then the shorter first. Raises KataFileError."""
    return _in_order(load(katas_folder() / slug) for slug in slugs())


def outlines() -> list[Outline]:
    """The outlines of every kata, in the order of `list`. Raises KataFileError. Takes a tenth of the time of `katas`."""
    return _in_order(_outline(katas_folder() / slug) for slug in slugs())


def _in_order(every: Iterable[_O]) -> list[_O]:
    return sorted(every, key=lambda kata: (kata.level, kata.minutes, kata.slug))


def normal(name: str) -> str:
    """`Cross-Attention` → `cross_attention`."""
    return name.strip().lower().replace("-", "_")


def find(name: str) -> Kata:
    """The kata called `name`, with - or _ and in any case. Raises UsageError with the nearest name."""
    known = slugs()
    if normal(name) in known:
        return load(katas_folder() / normal(name))

    raise UsageError(
        f"There is no kata '{name}'.{_meant(normal(name), known)}", next_step="See them all: attn-kata list"
    )


def check_property(kata: Kata, name: str) -> None:
    """Raises UsageError with the nearest name where the kata has no property `name`."""
    hidden_tests = (kata.folder / f"test_{kata.slug}.py").read_text(encoding="utf-8")
    known = re.findall(r"^(?:def )?test_(\w+)(?:\(| = )", hidden_tests, re.MULTILINE)
    if name not in known:
        raise UsageError(
            f"{kata.slug} has no property '{name}'.{_meant(name, known)}",
            next_step=f"See them all: attn-kata grade --kata {kata.slug}",
        )


def _meant(name: str, known: list[str]) -> str:
    import difflib  # only here: a right name should not wait for it

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean '{near[0]}'?" if near else ""


def load(folder: Path) -> Kata:
    """The kata in `folder`. Raises KataFileError for a key that is unknown, missing or of the wrong type."""
    file = folder / "kata.toml"
    if not _SLUG.fullmatch(folder.name):
        raise KataFileError(f"{file}: the folder '{folder.name}' is not a snake_case slug.")
    outline = _outline(folder)
    table = Table.of_file(file, known=[field.name for field in fields(Outline)])
    kata = Kata(
        **vars(outline),
        folder=folder,
        contract=table.docstring("contract"),
        hints=table.texts("hints", at_least=3),
        smoke=table.text("smoke"),
        entries=tuple(_entry(entry) for entry in table.tables("entry")),
    )
    table.nothing_else()
    if max(map(len, kata.contract.splitlines())) > 100:
        raise table.wrong("contract", "has a line of more than 100 characters")
    return kata


def _outline(folder: Path) -> Outline:
    table = Table.of_file(folder / "kata.toml", before="contract")
    outline = Outline(
        slug=folder.name,
        title=table.docstring("title"),
        level=table.positive("level"),
        minutes=table.positive("minutes"),
        summary=table.text("summary"),
    )
    table.nothing_else()
    if "\n" in outline.summary or len(outline.summary) > 60:
        raise table.wrong("summary", "must be one line of at most 60 characters")
    return outline


def _entry(table: Table) -> Entry:
    kind = table.text("kind")
    if kind not in ("function", "class"):
        raise table.wrong("kind", "must be 'function' or 'class'")
    is_class = kind == "class"
    entry = Entry(
        kind="class" if is_class else "function",
        name=table.identifier("name"),
        doc=table.docstring("doc"),
        signature="" if is_class else table.text("signature", default=""),
        returns="" if is_class else table.text("returns", default="Tensor"),
        steps=() if is_class else tuple(_step(step) for step in table.tables("step")),
        methods=tuple(_method(method) for method in table.tables("method")) if is_class else (),
    )
    table.nothing_else()
    if is_class and entry.methods[0].name != "__init__":
        raise table.wrong("method", "must begin with '__init__'")
    return entry


def _method(table: Table) -> Method:
    name = table.identifier("name")
    method = Method(
        name=name,
        doc=table.docstring("doc", default=""),
        signature=table.text("signature", default=""),
        returns=table.text("returns", default="None" if name == "__init__" else "Tensor"),
        steps=tuple(_step(step) for step in table.tables("step")),
    )
    table.nothing_else()
    return method


def _step(table: Table) -> Step:
    step = Step(
        todo=table.text("todo"),
        detail=table.text("detail", default=""),
        shape=table.text("shape", default=""),
    )
    table.nothing_else()
    return step
