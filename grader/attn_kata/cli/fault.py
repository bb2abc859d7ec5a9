"""A bug in attn-kata: a short message for the user, and a file with the details for a bug report."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from datetime import datetime
from importlib import metadata
from pathlib import Path

from attn_kata import __version__
from attn_kata.cli.output import warn
from attn_kata.history import home
from attn_kata.report.plain import one_line


def tell(problem: Exception, arguments: list[str]) -> None:
    """Print what happened and where the details are."""
    # The engine's errors explain themselves; any other exception needs its name.
    said = str(problem) if hasattr(problem, "details") else f"{type(problem).__name__}: {problem}"
    warn(f"This is a bug in attn-kata, not in your code: {one_line(said, most=200)}")
    if os.environ.get("ATTN_KATA_DEBUG"):
        warn(_details(problem, arguments))
        return
    file = _write(problem, arguments)
    if file:
        warn(f"Please report it, with this file: '{file}'")
    else:
        warn("Please report it. For the details, put ATTN_KATA_DEBUG=1 in front of the same command.")


def _write(problem: Exception, arguments: list[str]) -> Path | None:
    try:
        folder = home() / "faults"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{datetime.now():%Y%m%d-%H%M%S-%f}.txt"
        file.write_text(_details(problem, arguments), encoding="utf-8", errors="replace")
    except (OSError, RuntimeError):
        return None
    return file


def _details(problem: Exception, arguments: list[str]) -> str:
    return "\n".join(
        [
            f"attn-kata {__version__}, torch {_version('torch')}, click {_version('click')}, rich {_version('rich')}",
            f"Python {sys.version.split()[0]} on {platform.platform()}",
            f"attn-kata {' '.join(arguments)}",
            "",
            *traceback.format_exception(type(problem), problem, problem.__traceback__),
            str(getattr(problem, "details", "")),
        ]
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
