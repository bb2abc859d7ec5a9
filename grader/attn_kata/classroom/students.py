"""Whose a file is, by the names that Moodle, Canvas and GitHub Classroom give to folders and files.

    Moodle             Anna Schmidt_4711_assignsubmission_file_/mha.py     or, in one folder, ..._assignsubmission_file_mha.py
    Canvas             schmidtanna_4711_98765_mha.py, or schmidtanna_LATE_4711_98765_mha.py; where names are hidden,
                       anon_Ab3xZ_98765_mha.py or LATE_anon_Ab3xZ_98765_mha.py (canvas-lms, lib/content_zipper.rb)
    GitHub Classroom   attention-anna/mha.py, with attention-ben/ beside it: cloned repositories of one assignment

Everything else is called by its folder, or by its file without the suffix.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from attn_kata.report.plain import one_line

_MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d{1,20})_assignsubmission_(?:file|onlinetext)(?:_.*)?", re.DOTALL)
# Of a file, Canvas gives the number among all files of the school; `hw_1_2_anna.py` is not Canvas's.
_CANVAS = re.compile(r"(?P<name>[^_].*?)(?:_LATE)?_(?P<id>\d{1,20})_(?:\d{3,20}_.+|(?:text|link)\.html)", re.DOTALL)
_CANVAS_HIDDEN = re.compile(r"(?:LATE_)?anon_(?P<id>[0-9A-Za-z]{1,20})_(?:\d{3,20}_.+|(?:text|link)\.html)", re.DOTALL)
MOST_LETTERS = 120
UNNAMED = "(no name)"


@dataclass(frozen=True, kw_only=True)
class Student:
    """One student. `key` stays the same from run to run. `name` is safe to print. `number` is the school's, or ""."""

    key: str
    name: str
    number: str = ""


def of_folder(name: str, prefix: str = "") -> Student:
    """The student of a folder. `prefix` is what the names of all repositories begin with."""
    known = _MOODLE.fullmatch(name)
    if known:
        return _numbered(known)
    return Student(key=_key(name), name=_said(name.removeprefix(prefix)))


def of_file(name: str) -> Student:
    """The student of a file that lies among those of others."""
    hidden = _CANVAS_HIDDEN.fullmatch(name)
    if hidden:
        return Student(key=_key(f"anon_{hidden['id']}"), name=f"anon {hidden['id']}")
    known = _MOODLE.fullmatch(name) or _CANVAS.fullmatch(name)
    if known:
        return _numbered(known)
    return Student(key=_key(name), name=_said(os.path.splitext(name)[0]))


def is_known_scheme(name: str) -> bool:
    """Whether the name of a file says whose it is, whatever its suffix."""
    return any(scheme.fullmatch(name) for scheme in (_MOODLE, _CANVAS, _CANVAS_HIDDEN))


def shared_prefix(repositories: Iterable[str]) -> str:
    """What the names of two or more repositories begin with, up to a hyphen: the assignment."""
    names = list(repositories)
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: first.rfind("-", 0, same) + 1]


def told_apart(students: Iterable[Student]) -> dict[str, str]:
    """A name for each key. Students of one name also get their number, or their folder or file."""
    every = list(students)
    count: dict[str, int] = {}
    for student in every:
        count[student.name.casefold()] = count.get(student.name.casefold(), 0) + 1
    return {
        student.key: f"{student.name} ({student.number or _said(student.key)})"
        if count[student.name.casefold()] > 1
        else student.name
        for student in every
    }


def _numbered(known: re.Match[str]) -> Student:
    return Student(key=_key(f"{known['name']}_{known['id']}"), name=_said(known["name"]), number=known["id"])


def _key(name: str) -> str:
    """A name as valid Unicode: a file name may be any bytes."""
    return name.encode("utf-8", "backslashreplace").decode()


def _said(name: str) -> str:
    """A name on one line, without characters that move the cursor or turn the text around."""
    return one_line(name, most=MOST_LETTERS).strip() or UNNAMED
