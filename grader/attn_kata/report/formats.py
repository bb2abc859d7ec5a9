"""The ways in which a report is shown. A format is a module with `render(report, *, width, color) -> str`."""

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
}


def renderer(name: str) -> Callable[..., str]:
    """The `render` of the format `name`."""
    render: Callable[..., str] = importlib.import_module(FORMATS[name]).render
    return render


def render(report: Report, name: str, *, width: int = 80, color: bool = False) -> str:
    """The report in the format `name`, ending in a newline."""
    return renderer(name)(report, width=width, color=color)
