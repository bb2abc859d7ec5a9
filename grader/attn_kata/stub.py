"""The stub of a kata: what the candidate starts from, in three levels of help.

A kata's `stub.py.j2` is Python with holes. It extends `templates/stub.py.j2` and fills in two blocks:

    {% extends "stub.py.j2" %}

    {% block code %}                 the imports and the entry points; every function raises NotImplementedError
    {% endblock %}

    {% block shapes %}               the stub's own check of shapes: Python that prints, not indented
    {% endblock %}

A step of the code is a hole, alone on its line:

    {{ todo("Score every query against every key.", detail="...", shape="(..., Tq, Tk)") }}

The levels standard and guided show what to do; guided also shows `detail` (how to think of it, not the code) and `shape`
(the shape after this step), both optional. Steps are numbered, wrapped and indented when the stub is made.
"""

from __future__ import annotations

import re
import textwrap
from itertools import count
from typing import Literal

from attn_kata import contract, templates
from attn_kata.catalog import Kata

Level = Literal["guided", "standard", "blank"]
LEVELS: tuple[Level, ...] = ("guided", "standard", "blank")

_HEADER = re.compile(rb"^# attn-kata: ([A-Za-z0-9_-]+)(?: \((guided|standard|blank)\))?[ \t]*\r?$", re.MULTILINE)
_TODO = re.compile(r"^( *)\0(.*)\0(.*)\0(.*)\0\n", re.MULTILINE)  # what `todo` leaves: the template knows the indent
_DOCSTRING = re.compile(r'^ +""".*?"""\n\n?', re.MULTILINE | re.DOTALL)
_WIDTH = 100


def render(kata: Kata, level: Level = "standard") -> str:
    """The stub. Raises KataFileError where the contract or the template is wrong.

    guided has numbered steps with details and shapes, standard the steps, blank the signatures and the contract.
    """
    asked = contract.load(kata.prompt).text
    made = templates.render(
        _template(kata), katas=kata.folder.parent, todo=_todo, kata=kata, contract=asked, level=level
    )
    return _with_steps(made, level)


def code(kata: Kata, level: Level = "standard") -> str:
    """The code of the stub, without the contract and the shape check. Raises KataFileError."""
    return _with_steps(_block(kata, "code"), level).strip("\n") + "\n"


def signatures(kata: Kata) -> str:
    """The code of the stub alone, without its docstrings and steps. Raises KataFileError."""
    return _DOCSTRING.sub("", _with_steps(_block(kata, "code"), "blank")).rstrip("\n")


def shape_check(kata: Kata) -> str:
    """The stub's own check of shapes: Python that needs torch and the entry points. Raises KataFileError."""
    return _block(kata, "shapes")


def header(source: bytes) -> tuple[str | None, Level | None]:
    """The kata and the level that the header of a stub names, None where there is none."""
    found = _HEADER.search(source[:1024])
    if not found:
        return None, None
    slug, written = found[1].decode(), (found[2] or b"").decode()
    return slug, next((level for level in LEVELS if level == written), None)


def _template(kata: Kata) -> str:
    return f"{kata.folder.name}/stub.py.j2"


def _block(kata: Kata, name: str) -> str:
    return templates.render_block(_template(kata), name, katas=kata.folder.parent, todo=_todo)


def _todo(what: str, *, detail: str = "", shape: str = "") -> str:
    if not what.strip():
        raise ValueError("a todo says what to do")
    return f"\0{what}\0{detail}\0{shape}\0"


def _with_steps(made: str, level: Level) -> str:
    """What a template made, with the steps that this level shows."""
    numbers = count(1)

    def step(hole: re.Match[str]) -> str:
        pad, what, detail, shape = hole.groups()
        if level == "blank":
            return ""
        lines = _comment(f"TODO {next(numbers)}: ", what, pad)
        if level == "guided" and detail:
            lines += _comment("    ", detail, pad)
        if level == "guided" and shape:
            lines.append(f"{pad}#     shape: {shape}")
        return "\n".join(lines) + "\n"

    return _TODO.sub(step, made)


def _comment(lead: str, text: str, pad: str) -> list[str]:
    return textwrap.wrap(
        text,
        width=_WIDTH,
        initial_indent=f"{pad}# {lead}",
        subsequent_indent=f"{pad}#     ",
        break_long_words=False,
        break_on_hyphens=False,
    )
