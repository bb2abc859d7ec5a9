"""A kata's `examples.toml`, made of its specimens, so that `attn-kata explain` need not read them."""

from __future__ import annotations

import difflib
import json
import textwrap
from pathlib import Path

from attn_kata import specimens
from attn_kata.catalog import Kata
from attn_kata.diagnosis import examples
from attn_kata.diagnosis.examples import Example
from attn_kata.errors import KataFileError, UsageError, why
from attn_kata.specimens import Specimen
from attn_kata.workspace import shown

_FROM_SCRATCH = "from_scratch"  # a row that breaks it calls what is forbidden, which is more than its one mistake


def of_specimens(kata: Kata) -> dict[str, Example]:
    """What the wrong attempts show of each mistake that one of them makes alone. Raises KataFileError."""
    rows: dict[str, list[Specimen]] = {}
    for specimen in specimens.read(kata.folder):
        if len(specimen.mistakes) == 1:
            (id,) = specimen.mistakes
            rows.setdefault(id, []).append(specimen)
    return {id: _example(kata.slug, alone) for id, alone in rows.items()}


def write(kata: Kata) -> Path:
    """Write a kata's examples anew, and return the file. Raises KataFileError, and UsageError where it cannot be written."""
    tables = [
        f"# Made of wrong.toml, for `attn-kata explain`. Do not edit it; write it anew: attn-kata dev examples {kata.slug}\n"
    ]
    for id, example in of_specimens(kata).items():
        values = {"breaks": list(example.breaks), "row": example.row, "code": example.code}
        # A JSON string is a TOML string too.
        lines = [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value is not None
        ]
        tables.append("\n".join([f'["{id}"]', *lines, ""]))
    path = examples.file(kata.folder)
    try:
        path.write_text("\n".join(tables), encoding="utf-8")
    except OSError as problem:
        raise UsageError(
            f"'{shown(path)}' cannot be written: {why(problem)}.",
            next_step="Katas are changed in a clone of the repository: CONTRIBUTING.md says how.",
        ) from problem
    return path


def problems(kata: Kata) -> list[str]:
    """A sentence where examples.toml does not say what the specimens show."""
    anew = f"attn-kata dev examples {kata.slug}"
    if not examples.file(kata.folder).is_file():
        return [f"there is no examples.toml; write it, when the wrong attempts are right: {anew}"]
    try:
        kept = examples.of_kata(kata.folder)
    except KataFileError as problem:
        return [f"{problem.what} Write it anew: {anew}"]
    made = of_specimens(kata)
    changed = [id for id in kept.keys() | made.keys() if kept.get(id) != made.get(id)]
    return (
        [f"examples.toml does not say what wrong.toml shows of {min(changed)}; write it anew: {anew}"]
        if changed
        else []
    )


def wrong_lines(specimen: Specimen) -> str:
    """The lines of a wrong attempt that its base does not have, without imports. Empty where lines are only left out."""
    before, after = specimens.source_of(specimen.base).splitlines(), specimen.source().splitlines()
    added = [line[2:] for line in difflib.ndiff(before, after) if line.startswith("+ ") and line[2:].strip()]
    return textwrap.dedent("\n".join(line for line in added if not line.startswith(("import ", "from "))))


def _example(kata: str, alone: list[Specimen]) -> Example:
    fit = [row for row in alone if row.edits and _FROM_SCRATCH not in row.breaks]
    shows = [(row.name, lines) for row in fit if (lines := wrong_lines(row))]
    # The fewest lines show one mistake best; of equals the first row.
    row, code = min(shows, key=lambda one: one[1].count("\n"), default=(None, None))
    return Example(
        kata=kata, breaks=tuple(sorted({name for each in alone for name in each.breaks})), row=row, code=code
    )
