"""What other services need to grade with attn-kata: Gradescope's autograder zip, and a workflow for GitHub.

The zip is laid out as https://gradescope-autograders.readthedocs.io/en/latest/specs/ says. It has attn-kata itself in it, with
the chosen katas only, so that a machine needs nothing else but Python and the packages in requirements.txt.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from attn_kata import __version__, files, resources, templates
from attn_kata.catalog import Kata
from attn_kata.errors import UsageError, why

RUBRIC = "bundle_rubric.toml"  # in the package's folder of the zip, which no attempt can read
_ONLY_FOR_AUTHORS = frozenset({"right", "wrong", "wrong.toml", "__pycache__"})
_EXECUTABLE = 0o755 << 16
_ORDINARY = 0o644 << 16
_TIME = (2020, 1, 1, 0, 0, 0)  # the same content makes the same zip


def gradescope(katas: list[Kata], rubric: Path | None) -> bytes:
    """The zip. Raises UsageError where attn-kata's own metadata is not installed."""
    slugs = " ".join(kata.slug for kata in katas)
    texts = {
        "setup.sh": templates.render("bundle/setup.sh.j2"),
        "run_autograder": templates.render("bundle/run_autograder.j2", asked=slugs),
        "requirements.txt": "\n".join(_requirements()) + "\n",
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            _add(archive, name, text.encode(), _ORDINARY if name.endswith(".txt") else _EXECUTABLE)
        for name, path in _package(katas):
            _add(archive, f"attn_kata/{name}", path.read_bytes(), _ORDINARY)
        if rubric is not None:
            _add(archive, f"attn_kata/{RUBRIC}", files.read(rubric), _ORDINARY)
    return written.getvalue()


def github(katas: list[Kata]) -> str:
    """The workflow file."""
    python = ".".join(map(str, sys.version_info[:2]))
    return templates.render("bundle/workflow.yml.j2", asked=katas, version=__version__, python=python)


def write(path: Path, content: bytes) -> None:
    """Write a new file, and the folders above it. Raises UsageError where there is one already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise UsageError(
            f"'{files.shown(path)}' exists already and was not changed.",
            next_step="Remove it, or name another file: --out FILE",
        ) from None
    except OSError as problem:
        raise UsageError(f"'{files.shown(path)}' cannot be written: {why(problem)}.") from problem


def _add(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    info = zipfile.ZipInfo(name, _TIME)
    info.external_attr, info.compress_type = mode, zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def _package(katas: list[Kata]) -> Iterator[tuple[str, Path]]:
    """Every file of the package as an installation has it, with its path there."""
    package = Path(__file__).parents[1]
    data = {
        "templates": resources.templates_folder(),
        **{f"katas/{kata.slug}": kata.folder for kata in katas},
    }
    yield from _files(package, skipped=frozenset({"katas", "solutions", "templates"}))
    for name, folder in data.items():
        yield from ((f"{name}/{each}", path) for each, path in _files(folder))
    yield from ((f"solutions/{kata.slug}.py", kata.solution) for kata in katas)


def _files(folder: Path, skipped: frozenset[str] = frozenset()) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not _ONLY_FOR_AUTHORS.intersection(parts) and parts[0] not in skipped:
            yield "/".join(parts), path


def _requirements() -> list[str]:
    """What attn-kata needs, each at the version that is installed here, because it was tried with that one."""
    try:
        required = metadata.requires("attn-kata") or []
    except metadata.PackageNotFoundError:
        raise UsageError(
            "attn-kata is not installed here, so its requirements are not known.",
            next_step="Install it: python -m pip install attn-kata",
        ) from None
    names = [re.split(r"[ ;<>=!~\[(]", each, maxsplit=1)[0] for each in required if "extra ==" not in each]
    pins = []
    for name in names:
        try:
            pins.append(f"{name}=={metadata.version(name).partition('+')[0]}")
        except metadata.PackageNotFoundError:  # one that this Python does not need
            continue
    return pins
