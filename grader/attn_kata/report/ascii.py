"""Text for a terminal that cannot show all of Unicode: what stands for each sign, and escapes for other letters."""

from __future__ import annotations

import codecs

ERRORS = "attn_kata.ascii"  # a name for `errors=` of a stream

_SIGNS = {
    "√": "sqrt ",
    "ᵀ": "^T",
    "²": "^2",
    "·": ".",
    "×": "x",
    "±": "+-",
    "…": "...",
    "→": "->",
    "←": "<-",
    "⇄": "<->",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "–": "-",
    "—": "-",
    "─": "-",
    "│": "|",
    "•": "*",
    "●": "*",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "░": ".",  # the shades of weights, from light to dark
    "▒": "+",
    "▓": "*",
    "█": "#",
    "\ufffd": "?",
}


def in_ascii(text: str) -> str:
    """`text` in ASCII: `√64` becomes `sqrt 64`, and a letter without a sign of its own is escaped, `\\xf1`."""
    return text.encode("ascii", ERRORS).decode("ascii")


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    said = (_SIGNS.get(letter, letter.encode("ascii", "backslashreplace").decode("ascii")) for letter in letters)
    return "".join(said), error.end


codecs.register_error(ERRORS, _replace)
