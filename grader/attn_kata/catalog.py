'''The katas as their folders describe them: `katas/<slug>/kata.toml`, read strictly. No registry: folders are discovered.

The format of `kata.toml`. Every key is required unless marked optional; an unknown one is an error that names file and key:

    title = "Multi-head attention"   # what `list` and the stub call it
    level = 3                        # 1 and up; `list` groups by it
    minutes = 35                     # what an interview would give for it
    summary = "..."                  # one line, at most 60 characters, for `list`
    contract = """..."""             # the contract in full, as the stub states it; lines of at most 100 characters
    hints = ["...", "...", "..."]    # three or more, staged from a nudge to nearly there; the last is still not the code
    smoke = """..."""                # the body of the stub's own check of shapes: Python that calls the entry points and prints

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
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attn_kata.errors import KataFileError, UsageError
from attn_kata.resources import katas_folder as katas_folder
from attn_kata.resources import solutions_folder as solutions_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SLUG = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_REQUIRED = object()


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
class Kata:
    """One kata, as `kata.toml` says."""

    slug: str
    folder: Path
    title: str
    level: int
    minutes: int
    summary: str
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
    every = [load(katas_folder() / slug) for slug in slugs()]
    return sorted(every, key=lambda kata: (kata.level, kata.minutes, kata.slug))


def normal(name: str) -> str:
    """`Cross-Attention` → `cross_attention`."""
    return name.strip().lower().replace("-", "_")


def find(name: str) -> Kata:
    """The kata called `name`, with - or _ and in any case. Raises UsageError with the nearest name."""
    known = slugs()
    if normal(name) in known:
        return load(katas_folder() / normal(name))

    import difflib  # only here: a right name should not wait for it

    near = difflib.get_close_matches(normal(name), known, n=1, cutoff=0.5)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    raise UsageError(f"There is no kata '{name}'.{meant}", next_step="See them all: attn-kata list")


def load(folder: Path) -> Kata:
    """The kata in `folder`. Raises KataFileError for a key that is unknown, missing or of the wrong type."""
    file = folder / "kata.toml"
    if not _SLUG.fullmatch(folder.name):
        raise KataFileError(f"{file}: the folder '{folder.name}' is not a snake_case slug.")
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise KataFileError(f"{file} cannot be read: {problem}.") from problem

    table = _Table(raw, file, "")
    kata = Kata(
        slug=folder.name,
        folder=folder,
        title=table.docstring("title"),
        level=table.positive("level"),
        minutes=table.positive("minutes"),
        summary=table.text("summary"),
        contract=table.docstring("contract"),
        hints=table.texts("hints", at_least=3),
        smoke=table.text("smoke"),
        entries=tuple(_entry(entry) for entry in table.tables("entry")),
    )
    table.nothing_else()
    if max(map(len, kata.contract.splitlines())) > 100:
        raise table.wrong("contract", "has a line of more than 100 characters")
    if "\n" in kata.summary or len(kata.summary) > 60:
        raise table.wrong("summary", "must be one line of at most 60 characters")
    return kata


def _entry(table: _Table) -> Entry:
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


def _method(table: _Table) -> Method:
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


def _step(table: _Table) -> Step:
    step = Step(
        todo=table.text("todo"),
        detail=table.text("detail", default=""),
        shape=table.text("shape", default=""),
    )
    table.nothing_else()
    return step


class _Table:
    """One TOML table that knows its file and its place, hands out checked values, and what was not asked for is unknown."""

    def __init__(self, raw: dict[str, Any], file: Path, place: str) -> None:
        self._raw = raw
        self._file = file
        self._place = place
        self._asked: set[str] = set()

    def wrong(self, key: str, why: str) -> KataFileError:
        return KataFileError(f"{self._file}: '{self._place}{key}' {why}.")

    def nothing_else(self) -> None:
        for key in self._raw:
            if key not in self._asked:
                raise self.wrong(key, "is an unknown key")

    def text(self, key: str, default: object = _REQUIRED) -> str:
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text, not {type(value).__name__}")
        if not value.strip() and default is _REQUIRED:
            raise self.wrong(key, "is empty")
        return value.strip("\n").rstrip()

    def docstring(self, key: str, default: object = _REQUIRED) -> str:
        value = self.text(key, default)
        if "\\" in value or '"""' in value or value.endswith('"'):
            raise self.wrong(
                key, "goes into a docstring: no backslash, no three double quotes, no double quote at its end"
            )
        return value

    def identifier(self, key: str) -> str:
        value = self.text(key)
        if not value.isidentifier():
            raise self.wrong(key, f"must be a Python name, not '{value}'")
        return value

    def positive(self, key: str) -> int:
        value = self._value(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(key, "must be a whole number of 1 or more")
        return value

    def texts(self, key: str, *, at_least: int) -> tuple[str, ...]:
        value = self._value(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise self.wrong(key, "must be a list of texts, none of them empty")
        if len(value) < at_least:
            raise self.wrong(key, f"must have {at_least} or more, not {len(value)}")
        return tuple(item.strip() for item in value)

    def tables(self, key: str) -> list[_Table]:
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, f"must be one or more [[{self._place}{key}]] tables")
        return [_Table(item, self._file, f"{self._place}{key}[{number}].") for number, item in enumerate(value, 1)]

    def _value(self, key: str, default: object = _REQUIRED) -> object:
        self._asked.add(key)
        if key not in self._raw and default is _REQUIRED:
            raise self.wrong(key, "is missing")
        return self._raw.get(key, default)
