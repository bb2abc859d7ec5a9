"""A new kata: the folder and the solution, with a TODO wherever the author has to write. For `attn-kata dev new`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attn_kata import catalog, templates
from attn_kata.errors import UsageError, why
from attn_kata.resources import katas_folder, solutions_folder
from attn_kata.workspace import shown

# The template of each file, and where the file goes: within the kata's folder, or for the solution within its own.
FILES = {
    "kata.toml.j2": "kata.toml",
    "prompt.md.j2": "prompt.md",
    "stub.py.j2.j2": "stub.py.j2",
    "test.py.j2": "test_{slug}.py",
    "mistakes.py.j2": "mistakes.py",
    "mistakes.toml.j2": "mistakes.toml",
    "interview.toml.j2": "interview.toml",
    "plain.py.j2": "right/plain.py",
    "wrong.toml.j2": "wrong.toml",
}
_TODO = re.compile(r"\bTODO\b")


def write(name: str) -> list[Path]:
    """Write the files of a new kata, and return them. Raises UsageError for a name that cannot be a slug, or is taken."""
    slug = catalog.normal(name)
    if not catalog.SLUG.fullmatch(slug):
        raise UsageError(
            f"'{name}' cannot be a slug: a slug is made of lower-case words, joined by underscores.",
            next_step="For instance: attn-kata dev new relu_attention",
        )
    folder, solution = katas_folder() / slug, solutions_folder() / f"{slug}.py"
    taken = next((path for path in (folder, solution) if path.exists()), None)
    if taken is not None:
        raise UsageError(f"'{shown(taken)}' is there already.", next_step=f"Look at it: attn-kata dev check {slug}")
    written = [(folder / place.format(slug=slug), template) for template, place in FILES.items()]
    written.append((solution, "solution.py.j2"))
    title = slug.replace("_", " ").capitalize()
    try:
        for path, template in written:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(templates.render(f"new_kata/{template}", slug=slug, title=title), "utf-8")
    except OSError as problem:
        raise UsageError(
            f"'{shown(folder)}' cannot be written: {why(problem)}.",
            next_step="Katas are added to a clone of the repository: CONTRIBUTING.md says how.",
        ) from problem
    return [path for path, _ in written]


def todos(kata: catalog.Kata) -> Iterator[str]:
    """The TODOs that are left in a kata's files, one sentence each, with file and line."""
    files = [path for path in sorted(kata.folder.rglob("*")) if path.suffix in (".toml", ".md", ".py", ".j2")]
    for path in (*files, kata.solution):
        if not path.is_file():
            continue
        lines = path.read_text("utf-8", "replace").splitlines()
        left = [number for number, line in enumerate(lines, 1) if _TODO.search(line)]
        if left:
            place = path.name if path == kata.solution else path.relative_to(kata.folder).as_posix()
            more = f", and {len(left) - 1} more" if len(left) > 1 else ""
            yield f"{place}, line {left[0]}: a TODO is left{more}"
