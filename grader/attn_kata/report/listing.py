"""An attempt's source as lines with syntax highlighting; all text in them is safe to print."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from attn_kata.report.model import Cell
from attn_kata.report.plain import plain

CONTEXT = 4  # lines shown around the line of a mistake
_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_KINDS: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "comment"),
    (String, "string"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Number, "number"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Builtin, "builtin"),
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of source: its number, whether it has a mistake, and its parts as (kind, text).

    `shown` is the number as the user counts: of a notebook the one in the cell, None for a line that is in no cell.
    """

    number: int
    shown: int | None
    marked: bool
    parts: tuple[tuple[str, str], ...]


def lines(source: bytes, marked: Iterable[int] = (), cells: Sequence[Cell] = ()) -> list[Line]:
    """Every line of `source`, numbered as Python numbers them. `cells` are those of a notebook."""
    wanted = set(marked)
    rows: list[list[tuple[str, str]]] = [[]]
    # Python ends a line at \n, \r\n and a lone \r; `plain` removes other characters that break lines.
    text = plain(re.sub(r"\r\n?", "\n", _decoded(source)))
    for token, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        kind = next((name for base, name in _KINDS if token in base), "")
        for place, part in enumerate(value.split("\n")):
            if place:
                rows.append([])
            if part:
                rows[-1].append((kind, part))
    while rows and not rows[-1]:
        rows.pop()
    shown: dict[int, int] = {
        line: cell.starts_at + line - cell.first for cell in cells for line in range(cell.first, cell.last + 1)
    }
    return [
        Line(number=at, shown=shown.get(at) if cells else at, marked=at in wanted, parts=tuple(parts))
        for at, parts in enumerate(rows, 1)
    ]


def around(every: list[Line], number: int, before: int = CONTEXT, after: int = CONTEXT) -> list[Line]:
    """The lines around line `number`."""
    return every[max(0, number - 1 - before) : number + after]


def _decoded(source: bytes) -> str:
    """The text as Python reads it (PEP 263), with replacement characters for invalid bytes."""
    if source.startswith(codecs.BOM_UTF8):
        return source[len(codecs.BOM_UTF8) :].decode("utf-8", "replace")
    for line in source.split(b"\n", 2)[:2]:
        found = _CODING.match(line.decode("latin-1"))
        if found:
            try:
                return source.decode(found[1], "replace")
            except (LookupError, ValueError, AssertionError):
                break
    return source.decode("utf-8", "replace")
