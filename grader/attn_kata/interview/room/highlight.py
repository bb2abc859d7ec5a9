"""Syntax colours for Python, line by line: one key changes one line, and the other lines are cached.

This is not a parser: an f-string is one string, and incomplete code may have wrong colours.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from functools import lru_cache

Span = tuple[int, int, str]

STYLES = {
    "comment": "italic #7f8c98",
    "string": "#a5c261",
    "number": "#d19a66",
    "keyword": "bold #c792ea",
    "constant": "#d19a66",
    "name": "bold #61afef",
    "decorator": "#e5c07b",
    "self": "italic #e06c75",
}
_CONSTANTS = {"None", "True", "False", "NotImplemented", "Ellipsis"}
_TOKEN = re.compile(
    r"""(?P<comment>\#.*)
    |(?P<open>(?:[rbfuRBFU]{0,2})(?:\"\"\"|'''))
    |(?P<string>[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))
    |(?P<decorator>^\s*@[\w.]+)
    |(?P<number>\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?j?))
    |(?P<word>[^\W\d]\w*)""",
    re.X,
)


def spans(lines: Sequence[str]) -> list[tuple[Span, ...]]:
    """For each line its spans, as (from, to, a key of STYLES)."""
    made, inside = [], ""
    for line in lines:
        found, inside = _line(line, inside)
        made.append(found)
    return made


@lru_cache(8192)
def _line(line: str, inside: str) -> tuple[tuple[Span, ...], str]:
    """The spans of one line, and the open quotes at its end. `inside` are the open quotes at its start, or ""."""
    found: list[Span] = []
    at, previous = 0, ""
    while True:
        if inside:
            end = _end_of(line, at, inside)
            found.append((0 if not found else found[-1][1], len(line) if end < 0 else end, "string"))
            if end < 0:
                return tuple(found), inside
            at, inside = end, ""
        token = _TOKEN.search(line, at)
        if token is None:
            return tuple(found), ""
        kind, text = str(token.lastgroup), token.group()
        at = token.end()
        if kind == "open":
            inside = text[-3:]
            found.append((token.start(), at, "string"))
            continue
        if kind == "word":
            kind = _word(text, previous)
            previous = text
        if kind:
            found.append((token.start(), at, kind))


def _word(text: str, previous: str) -> str:
    if previous in ("def", "class"):
        return "name"
    if text in _CONSTANTS:
        return "constant"
    if keyword.iskeyword(text):
        return "keyword"
    return "self" if text in ("self", "cls") else ""


def _end_of(line: str, at: int, quotes: str) -> int:
    """The position after the closing quotes, or -1 if they are not on this line."""
    while (place := line.find(quotes, at)) >= 0:
        backslashes = len(line[:place]) - len(line[:place].rstrip("\\"))
        if backslashes % 2 == 0:
            return place + len(quotes)
        at = place + 1
    return -1
