"""The stub of a kata: what the candidate starts from, in three levels of help.

Stubs are made from `kata.toml` by a template once, when a kata is written, and lie in its folder: `start` has but to copy one.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Literal

from attn_kata import resources
from attn_kata.catalog import Kata
from attn_kata.errors import OwnError

Level = Literal["guided", "standard", "blank"]
LEVELS: tuple[Level, ...] = ("guided", "standard", "blank")

_HEADER = re.compile(rb"^# attn-kata: ([A-Za-z0-9_-]+)(?: \((guided|standard|blank)\))?[ \t]*\r?$", re.MULTILINE)


def path(kata: Kata, level: Level) -> Path:
    """Where the stub of this level lies."""
    return kata.folder / "stubs" / f"{level}.py"


def read(kata: Kata, level: Level = "standard") -> str:
    """The stub: guided has numbered steps with details and shapes, standard the steps, blank signature and contract."""
    try:
        return path(kata, level).read_text("utf-8")
    except FileNotFoundError:
        missing = f"The kata {kata.slug} has no {level} stub."
        raise OwnError(missing, next_step=f"attn-kata dev stubs {kata.slug}") from None


def render(kata: Kata, level: Level) -> str:
    """The stub as the template makes it of `kata.toml`."""
    import jinja2  # only for authors

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
