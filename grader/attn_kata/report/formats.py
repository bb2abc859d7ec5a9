"""The ways in which a report is shown. A format is a module with `render(report, *, width, color, source)`.

`source` is the attempt as it was graded: a Report does not carry it, and a page that shows the line needs it.
Each format takes of `width`, `color` and `source` what it has a use for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attn_kata.report.model import Report


# Each is imported only when it is wanted.
FORMATS = {
    "terminal": "attn_kata.report.terminal",
    "json": "attn_kata.report.json",
    "html": "attn_kata.report.html",
    "junit": "attn_kata.report.junit",
    "gradescope": "attn_kata.report.gradescope",
    "github": "attn_kata.report.github",
}


def renderer(name: str) -> Callable[..., str]:
    """The `render` of the format `name`."""
    render: Callable[..., str] = importlib.import_module(FORMATS[name]).render
    return render


def render(report: Report, name: str, *, width: int = 80, color: bool = False, source: bytes = b"") -> str:
    """The report in the format `name`, ending in a newline."""
    return renderer(name)(report, width=width, color=color, source=source)
