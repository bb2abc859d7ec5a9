"""The command as its users run it, in a folder and with a data folder of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

UNWANTED = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "ATTN_KATA_DEBUG", "PYTHONIOENCODING")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the candidate works."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What the command sees of the environment; what it leaves in TMPDIR can be looked at."""
    (tmp_path / "tmp").mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, "ATTN_KATA_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "TERM": "xterm-256color"}
