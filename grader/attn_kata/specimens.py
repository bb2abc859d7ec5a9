"""The right and wrong attempts that travel with a kata, read strictly.

A right attempt is a file, `right/<name>.py`. Comments at its top say what it is:

    # style: explicit loops over samples and heads
    # edge fails: half_precision, large_scores     (optional: the edge properties that do not hold, exactly these)

A wrong attempt is a row of `wrong.toml`: a right one and the edits that spoil it.

    [mask_inverted]                  # its name
    base = "plain"                   # right/plain.py; "solution" is the reference
    breaks = ["mask", "values"]      # properties that it must break, one or more
    mistakes = ["mask.inverted"]     # what the diagnosis must find, all of it; [] where no known mistake reproduces it
    note = "..."                     # optional, for the reader
    [[mask_inverted.edit]]           # one or more, applied in this order
    old = '~mask'                    # occurs exactly once in the text that it is applied to
    new = 'mask'

What no small edit gives is a file, `wrong/<name>.py`, with the same said at its top:

    # breaks: values, gradients
    # mistake: scale.embed_dim + mask.inverted     (or none)
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from attn_kata.errors import KataFileError, UsageError
from attn_kata.resources import solutions_folder
from attn_kata.tables import Table

SOLUTION = "solution"  # the reference, as the base of an edit
_COMMENT = re.compile(r"#\s*([a-z ]+):\s*(.*)")


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One replacement in a right attempt. `place` is its file and row, for errors."""

    old: str
    new: str
    place: str


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A right or wrong attempt and what is said of it. A right one and a whole wrong file are their own base."""

    name: str
    kind: Literal["right", "wrong"]
    base: Path
    edits: tuple[Edit, ...] = ()
    edge_fails: frozenset[str] = field(default_factory=frozenset)
    breaks: frozenset[str] = field(default_factory=frozenset)
    mistakes: frozenset[str] = field(default_factory=frozenset)  # empty where none that is known reproduces it
    note: str = ""

    @property
    def title(self) -> str:
        """`wrong/mask_inverted`."""
        return f"{self.kind}/{self.name}"

    def source(self) -> str:
        """Its Python source, without the comments at the top. Raises KataFileError where an edit does not apply."""
        return apply(source_of(self.base), self.edits)


class Collision(ValueError):
    """Two wrong attempts that cannot be made at once."""


def apply(source: str, edits: Iterable[Edit]) -> str:
    """`source` after each edit in turn. Raises KataFileError where an old text does not occur exactly once."""
    for edit in edits:
        times = source.count(edit.old)
        if times != 1:
            seen = "does not occur" if times == 0 else f"occurs {times} times"
            raise KataFileError(f"{edit.place} {seen} in the text that it is applied to; it must occur exactly once.")
        source = source.replace(edit.old, edit.new)
    return source


def combined(wrongs: Sequence[Specimen]) -> str:
    """The source that makes the mistakes of all of these rows, one or more.

    Raises Collision where two have different bases, or where one's edits change what the other's hold on to.
    """
    for one, other in itertools.combinations(wrongs, 2):
        if one.base != other.base:
            raise Collision(
                f"{one.name} and {other.name} are made from different attempts: {one.base.stem} and {other.base.stem}."
            )
        if _both(one, other) is None or _both(one, other) != _both(other, one):
            raise Collision(f"{one.name} and {other.name} change the same part of {one.base.stem}.")
    return apply(source_of(wrongs[0].base), [edit for wrong in wrongs for edit in wrong.edits])


def _both(first: Specimen, second: Specimen) -> str | None:
    try:
        return apply(first.source(), second.edits)
    except KataFileError:
        return None


def read(folder: Path) -> list[Specimen]:
    """Every specimen of the kata in `folder`: right ones by name, rows of wrong.toml in its order, whole wrong files by name.

    Raises KataFileError that names file and row. Edits are applied by `Specimen.source`, not here.
    """
    rights = [_right(path) for path in sorted((folder / "right").glob("*.py"))]
    rows = _rows(folder)
    files = [_whole(path) for path in sorted((folder / "wrong").glob("*.py"))]
    twice = {row.name for row in rows} & {file.name for file in files}
    if twice:
        name = min(twice)
        raise KataFileError(f"{folder / 'wrong.toml'}: '{name}' is also a file, wrong/{name}.py; a name is used once.")
    return [*rights, *rows, *files]


def row(folder: Path, name: str) -> Specimen:
    """One row of the kata's wrong.toml; nothing is asked of the others. Raises KataFileError where it is not there."""
    file = folder / "wrong.toml"
    for key, table in Table.of_file(file).named_tables():
        if key == name:
            return _row(key, table, folder)
    raise KataFileError(f"{file}: there is no row '{name}'.")


def find(folder: Path, name: str) -> Specimen:
    """The specimen called `name`, with `right/` or `wrong/` before it or without, `.py` after it or not.

    Raises UsageError with the nearest name.
    """
    known = read(folder)
    plain = name.strip().removesuffix(".py")
    found = [specimen for specimen in known if plain in (specimen.name, specimen.title)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{folder.name} has two specimens called '{name}'.",
            next_step=f"Name one of them: {' or '.join(specimen.title for specimen in found)}",
        )

    import difflib  # only here: a right name should not wait for it

    kind, _, rest = plain.rpartition("/")
    titles = {specimen.name: specimen.title for specimen in known if kind in ("", specimen.kind)}
    near = difflib.get_close_matches(rest, titles, n=1, cutoff=0.5)
    meant = f" Did you mean '{titles[near[0]]}'?" if near else ""
    raise UsageError(
        f"{folder.name} has no specimen '{name}'.{meant}", next_step=f"See them all: attn-kata dev show {folder.name}"
    )


def _right(path: Path) -> Specimen:
    said = _comments(path, required=("style",), optional=("edge fails",))
    return Specimen(name=path.stem, kind="right", base=path, edge_fails=_names(said.get("edge fails", "")))


def _whole(path: Path) -> Specimen:
    said = _comments(path, required=("breaks", "mistake"))
    mistakes = _names(said["mistake"].replace(" + ", ",")) - {"none"}
    return Specimen(name=path.stem, kind="wrong", base=path, breaks=_names(said["breaks"]), mistakes=mistakes)


def _rows(folder: Path) -> list[Specimen]:
    file = folder / "wrong.toml"
    if not file.is_file():
        return []
    return [_row(name, table, folder) for name, table in Table.of_file(file).named_tables()]


def _row(name: str, table: Table, folder: Path) -> Specimen:
    base = table.text("base")
    path = solutions_folder() / f"{folder.name}.py" if base == SOLUTION else folder / "right" / f"{base}.py"
    if not path.is_file():
        raise table.wrong("base", f"is '{base}', which is neither the name of a file in right/ nor '{SOLUTION}'")
    row = Specimen(
        name=name,
        kind="wrong",
        base=path,
        edits=tuple(_edit(edit) for edit in table.tables("edit")),
        breaks=frozenset(table.texts("breaks", at_least=1)),
        mistakes=frozenset(table.texts("mistakes", at_least=0)),
        note=table.text("note", default=""),
    )
    table.nothing_else()
    return row


def _edit(table: Table) -> Edit:
    edit = Edit(old=table.exact_text("old"), new=table.exact_text("new"), place=table.place("old"))
    table.nothing_else()
    if not edit.old:
        raise table.wrong("old", "is empty")
    if edit.old == edit.new:
        raise table.wrong("new", "is the same as 'old'")
    return edit


def _lines(path: Path) -> tuple[list[str], str]:
    """The comments at the top of a file, and what comes after them."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise KataFileError(f"{path} cannot be read: {problem}.") from problem
    lines = text.splitlines(keepends=True)
    top = list(itertools.takewhile(_COMMENT.match, lines))
    return top, "".join(lines[len(top) :])


def source_of(path: Path) -> str:
    """The file's text without the comments at its top: what edits are applied to."""
    return _lines(path)[1]


def _comments(path: Path, *, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, str]:
    """What the comments at the top of a specimen's file say, by their first words."""
    said: dict[str, str] = {}
    for line in _lines(path)[0]:
        key, value = _COMMENT.match(line).groups()  # type: ignore[union-attr]  # matched by `_lines`
        if key not in (*required, *optional):
            raise KataFileError(f"{path}: '# {key}:' is unknown here.")
        if key in said:
            raise KataFileError(f"{path}: '# {key}:' is there twice.")
        said[key] = value
    for key in required:
        if not said.get(key, "").strip():
            raise KataFileError(f"{path}: there is no '# {key}: …' at the top.")
    return said


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())
