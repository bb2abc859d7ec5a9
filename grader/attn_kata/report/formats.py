"""The formats of a report. A format is a module with `render(report, *, width, color, source)`.

`source` is the graded attempt: a Report does not contain it, and the HTML page shows it.
A format may ignore `width`, `color` and `source`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attn_kata.report.model import Report


# A format is imported only when it is used.
FORMATS = {
    "terminal": "attn_kata.report.terminal",
    "json": "attn_kata.report.json",
    "html": "attn_kata.report.html",
    "junit": "attn_kata.report.junit",
    "gradescope": "attn_kata.report.gradescope",
    "github": "attn_kata.report.github",
}


FOLDED = "attn_kata.report.folded"  # what `grade` prints; not a format to ask for


def renderer(name: str) -> Callable[..., str]:
    """The `render` of the format `name`, or of "folded"."""
    render: Callable[..., str] = importlib.import_module({**FORMATS, "folded": FOLDED}[name]).render
    return render


def render(report: Report, name: str, *, width: int = 80, color: bool = False, source: bytes = b"") -> str:
    """The report in the format `name`, ending in a newline."""
    return renderer(name)(report, width=width, color=color, source=source)
