"""Finds the data folders `katas`, `solutions` and `templates`: in the package, or at the root of the repository."""

from __future__ import annotations

from pathlib import Path

from attn_kata.errors import OwnError

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """The data folder `name`. Raises OwnError if the installation does not have it."""
    for parent in (_PACKAGE, _PACKAGE.parents[1]):
        if (parent / name).is_dir():
            return parent / name
    raise OwnError(
        f"This installation of attn-kata has no folder '{name}'.",
        next_step="Install it again: pip install --force-reinstall attn-kata",
    )


def katas_folder() -> Path:
    """The folder with one folder for each kata."""
    return _folder("katas")


def solutions_folder() -> Path:
    """The folder with one reference, `<slug>.py`, for each kata."""
    return _folder("solutions")


def templates_folder() -> Path:
    """The folder with every Jinja2 template. (PackageLoader fails when editable: use FileSystemLoader.)"""
    return _folder("templates")
