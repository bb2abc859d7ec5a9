"""A plan file that somebody wrote: an error in it names the line."""

from __future__ import annotations

import re
from pathlib import Path

from attn_kata import workspace
from attn_kata.tables import Table

_HIDDEN = re.compile(r'"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#.*')
_ROUND = re.compile(r"\{|^[ \t]*\[\[\s*rounds\s*\]\]", re.MULTILINE)
_PLACE = re.compile(r"rounds\[(\d+)\]\.")


class PlanTable(Table):
    """A table of a plan; its errors begin with the file and the line: `my.toml, line 7: 'minutes' is missing.`"""

    def place(self, key: str) -> str:
        text = _bare(_read(self._file))
        start, end = 0, len(text)
        inside = _PLACE.match(self._place)
        if inside:
            starts = [found.start() for found in _ROUND.finditer(text)]
            number = int(inside[1])
            if number <= len(starts):
                start, end = starts[number - 1], [*starts, len(text)][number]
        found = re.compile(rf"\b{re.escape(key)}\s*(?:=|\]\])").search(text, start, end)
        at = found.start() if found else start
        return f"{workspace.shown(self._file)}, line {text.count(chr(10), 0, at) + 1}: '{key}'"

    @staticmethod
    def line_of(file: Path, text: str) -> str:
        """`, line 7` for the first line with this text in quotes, in any spelling of a slug; "" if there is none."""
        wanted = re.compile(rf"[\"']{re.escape(text).replace('_', '[-_]')}[\"']", re.IGNORECASE)
        for number, line in enumerate(_read(file).splitlines(), 1):
            if wanted.search(line.split("#")[0]):
                return f", line {number}"
        return ""


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # it could be read a moment ago
        return ""


def _bare(text: str) -> str:
    """The text with comments and strings blanked out, every character at its place."""
    return _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)
