"""The command as its users run it: a real process, in a folder and with a data folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

UNWANTED = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "ATTN_KATA_DEBUG", "TERM", "PYTHONIOENCODING")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the command keeps things."""
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the candidate works."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """What the command sees of the environment."""
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, "ATTN_KATA_HOME": str(home)}


@pytest.fixture
def run(folder: Path, environment: dict[str, str], ready: Any) -> Run:
    """`run("start", "mha")`: what the command printed and its exit code.

    With options or variables for Python, even with none (`python=()`), it runs in a new Python; with `python`, its engine
    loads torch as well.
    """

    def run(*arguments: str, cwd: Path = folder, python: tuple[str, ...] | None = None, **variables: str) -> object:
        if python is None and not any(name.startswith("PYTHON") for name in variables):
            return ready.run(arguments, cwd=cwd, env={**environment, **variables})
        command = ready.face(*arguments) if python is None else [sys.executable, *python, "-m", "attn_kata", *arguments]
        return subprocess.run(
            command,
            cwd=cwd,
            env={**environment, **variables},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return run  # type: ignore[return-value]
