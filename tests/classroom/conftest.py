"""Classes as Moodle, Canvas and GitHub Classroom hand them over, made of the katas' own specimens."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attn_kata import catalog, specimens

Run = Callable[..., "subprocess.CompletedProcess[str]"]
KATA = "sdpa"  # its gradings are the quickest
RIGHT, SCALE, STRIDED = "right/plain", "scale_missing", "view_of_strided"

# Moodle's "Download all submissions" with folders: mod/assign/locallib.php, download_submissions().
MOODLE = "{name}_{id}_assignsubmission_file_/{file}"
MOODLE_FLAT = "{name}_{id}_assignsubmission_file_{file}"
# Canvas's "Download Submissions": the sortable name without signs, LATE, user, attachment, file.
CANVAS = "{name}_{id}_98{id}_{file}"
CANVAS_LATE = "{name}_LATE_{id}_98{id}_{file}"


def source(name: str, kata: str = KATA) -> str:
    """The source of a specimen."""
    return specimens.find(catalog.find(kata).folder, name).source()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What the command sees of the environment: a home of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "ATTN_KATA_HOME": str(tmp_path / "home")}


@pytest.fixture
def run(tmp_path: Path, environment: dict[str, str], ready: Any) -> Run:
    """`run("class", folder, "--kata", "sdpa")` in a process and a folder of its own. With `preexec_fn`, in a new Python.

    Its engines have loaded torch already.
    """
    (tmp_path / "work").mkdir(exist_ok=True)

    def run(*arguments: str | Path, **changed: object) -> object:
        options = {"cwd": tmp_path / "work", "env": environment, "timeout": 120, **changed}
        if "preexec_fn" not in options:
            return ready.run([*map(str, arguments)], **options)
        command = ready.face(*map(str, arguments))
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **options)

    return run  # type: ignore[return-value]


def write_files(folder: Path, contents: dict[str, str]) -> Path:
    """A folder with these files."""
    for name, text in contents.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


def write_zip(path: Path, contents: dict[str, str]) -> Path:
    """A zip with these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return path
