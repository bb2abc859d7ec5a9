"""Writes everything that a class shows into its folder: tables and pages, made anew from the stored results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from attn_kata import files
from attn_kata.classroom import pages, tables
from attn_kata.classroom.store import RunInfo, Store
from attn_kata.classroom.summary import Summary, Tally
from attn_kata.errors import UsageError, why
from attn_kata.report.rubric import Rubric

STUDENTS, TEACHER = "students", "teacher"


def counted(store: Store, info: RunInfo, rubric: Rubric | None) -> Summary:
    """The summary of what is stored, without writing anything."""
    tally, names = Tally(info, rubric, store.left_out()), pages.PageNames()
    for kept in store.kept():
        tally.add(kept, names.of(kept.listed.name))
    return tally.summary()


def write(store: Store, info: RunInfo, rubric: Rubric | None, tell: Callable[[int], None] = lambda _: None) -> Summary:
    """Write the pages and the tables; return the summary. `tell` is given the number of students that are done.

    Each file is complete or is the one from before. Raises UsageError where one cannot be written.
    """
    folder = store.folder
    tally, names = Tally(info, rubric, store.left_out()), pages.PageNames()
    written = set()
    try:
        for each in (STUDENTS, TEACHER):
            (folder / each).mkdir(exist_ok=True)
        for number, kept in enumerate(store.kept(), 1):
            name = names.of(kept.listed.name)
            row = tally.add(kept, name)
            _replace(folder / STUDENTS / f"{name}.html", pages.student(kept, row, info.kata))
            _replace(folder / TEACHER / f"{name}.html", pages.teacher(kept, row, info.kata))
            written.add(f"{name}.html")
            tell(number)
        _remove_others(folder, written)
        summary = tally.summary()
        _replace(folder / "results.csv", tables.as_csv(summary))
        _replace(folder / "results.json", tables.as_json(summary))
        _replace(folder / "class.html", pages.summary(summary))
    except OSError as problem:
        raise UsageError(
            f"The pages in '{files.shown(folder)}' cannot be written: {why(problem)}.",
            next_step="The results are kept. Make room or correct this, and give the same command again",
        ) from problem
    return summary


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name[:100]}.new")
    try:
        fresh.write_text(text, encoding="utf-8", errors="replace", newline="")
        os.replace(fresh, path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def _remove_others(folder: Path, written: set[str]) -> None:
    """Remove the pages of students who are no longer among the submissions, and files that a killed run left half written."""
    for each in (STUDENTS, TEACHER):
        for entry in os.scandir(folder / each):
            ours = entry.name.endswith(".html") or (entry.name.startswith(".") and entry.name.endswith(".html.new"))
            if ours and entry.name not in written:
                os.unlink(entry.path)
