"""The stub of a kata: what the candidate starts from, in three levels of help."""

from __future__ import annotations

import re
import textwrap
from typing import Literal

from attn_kata import resources
from attn_kata.catalog import Kata

Level = Literal["guided", "standard", "blank"]
LEVELS: tuple[Level, ...] = ("guided", "standard", "blank")

_HEADER = re.compile(rb"^# attn-kata: ([A-Za-z0-9_-]+)(?: \((guided|standard|blank)\))?[ \t]*\r?$", re.MULTILINE)


def render(kata: Kata, level: Level = "standard") -> str:
    """The stub: guided has numbered steps with details and shapes, standard the steps, blank signature and contract."""
    import jinja2  # only here: no other command needs it, and it is half of what `start` takes

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.templates_folder()),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # Python, not HTML
    )
    environment.filters["comment"] = _comment
    return environment.get_template("stub.py.j2").render(kata=kata, level=level)


def header(source: bytes) -> tuple[str | None, Level | None]:
    """The kata and the level that the header of a stub names, None where there is none."""
    found = _HEADER.search(source[:1024])
    if not found:
        return None, None
    slug, written = found[1].decode(), (found[2] or b"").decode()
    return slug, next((level for level in LEVELS if level == written), None)


def _comment(text: str, first: str, pad: str) -> str:
    return textwrap.fill(
        text,
        width=100 - len(pad),
        initial_indent=f"# {first}",
        subsequent_indent="#     ",
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\n", f"\n{pad}")
