"""Which of a source's imports are not here."""

from __future__ import annotations

import importlib.util


def is_missing(package: str) -> bool:
    """Whether a package is not installed, or a module beside the source was not read with it."""
    if package.startswith("."):
        return True
    try:
        return importlib.util.find_spec(package) is None
    except (ImportError, ValueError):
        return True
