"""The submissions of a class: whose they are, and which file of each is meant.

A student with several files is graded by the one that defines what the kata asks for. What cannot be decided has a `problem`
and is not graded. It is never guessed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from attn_kata import definitions, files, notebooks, sources
from attn_kata.catalog import Kata
from attn_kata.classroom import students
from attn_kata.classroom.students import Student
from attn_kata.classroom.tree import Entry, Tree
from attn_kata.errors import UsageError
from attn_kata.sources import Source

PYTHON, NOTEBOOK = ".py", sources.SUFFIX
MOST_NOTEBOOK_BYTES = 20_000_000  # with its outputs
MOST_CANDIDATES = 50  # of one student; a copied library has more
NAMED = 6  # of the files in a sentence


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What one student handed in. `problem` is a sentence that says why nothing can be graded, or "".

    `read` returns the source of the chosen `file`, and raises UsageError.
    """

    key: str
    student: str
    file: str
    read: Callable[[], Source]
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Every submission in the order of the students' keys, and sentences about files that belong to nobody."""

    submissions: list[Submission]
    left_out: list[str]


def collect(tree: Tree, kata: Kata, entries: tuple[str, ...] = ()) -> Collected:
    """Find the submissions in a tree. `entries` are the definitions that are meant, if not those of the contract."""
    asked = entries or kata.entries
    top = _top(tree)
    folders = sorted(folder[len(top)] for folder in tree.folders if len(folder) == len(top) + 1 and folder[:-1] == top)
    repositories = [name for name in folders if (*top, name) in tree.repositories]
    prefix = students.shared_prefix(repositories)
    found: dict[str, tuple[Student, list[Entry]]] = {}
    for name in folders:
        student = students.of_folder(name, prefix if name in repositories else "")
        found.setdefault(student.key, (student, []))
    left_out = []
    for entry in tree.entries:
        inner = entry.parts[len(top) :]
        if len(inner) > 1:
            student = students.of_folder(inner[0], prefix if inner[0] in repositories else "")
        elif entry.suffix in (PYTHON, NOTEBOOK) or students.is_known_scheme(inner[0]):
            student = students.of_file(inner[0])
        else:
            left_out.append(f"'{entry.name}' {entry.problem or 'is neither Python nor a notebook'}.")
            continue
        found.setdefault(student.key, (student, []))[1].append(entry)
    names = students.told_apart(student for student, _ in found.values())
    return Collected(
        submissions=[_chosen(key, names[key], theirs, kata, asked) for key, (_, theirs) in sorted(found.items())],
        left_out=left_out,
    )


def _top(tree: Tree) -> tuple[str, ...]:
    """Where the submissions begin: below folders that are alone and hold only folders, as many zips have one."""
    top: tuple[str, ...] = ()
    while True:
        below = {folder for folder in tree.folders if len(folder) == len(top) + 1 and folder[:-1] == top}
        if len(below) != 1 or any(entry.parts[:-1] == top for entry in tree.entries):
            return top
        (only,) = below
        has_files = any(entry.parts[:-1] == only for entry in tree.entries)
        is_student = students.is_known_scheme(only[-1]) or only in tree.repositories
        if is_student or (has_files and not _holds_students(tree, only)):
            return top
        top = only


def _holds_students(tree: Tree, folder: tuple[str, ...]) -> bool:
    """Whether the files right in a folder are named as those of several students."""
    keys = {
        students.of_file(entry.parts[-1]).key
        for entry in tree.entries
        if entry.parts[:-1] == folder and students.is_known_scheme(entry.parts[-1])
    }
    return bool(keys)


# -------------------------------------------------------------------------------------------------- which file is meant


def _chosen(key: str, name: str, entries: list[Entry], kata: Kata, asked: tuple[str, ...]) -> Submission:
    entry, problem = _choice(entries, kata, asked)
    if entry is not None and entry.problem:
        problem = f"'{entry.name}' {entry.problem}."
    if entry is None or problem:
        return Submission(
            key=key, student=name, file="" if entry is None else entry.name, read=_no_source, problem=problem
        )
    return Submission(key=key, student=name, file=entry.name, read=functools.partial(source_of, entry, kata))


def chosen(entries: list[Entry], kata: Kata) -> Entry:
    """The file of one student that is meant. Raises UsageError where none can be chosen."""
    entry, problem = _choice(entries, kata, kata.entries)
    if entry is None or entry.problem:
        raise UsageError(problem if entry is None else f"'{entry.name}' {entry.problem}.")
    return entry


def _choice(entries: list[Entry], kata: Kata, asked: tuple[str, ...]) -> tuple[Entry | None, str]:
    """The file that is meant, or a sentence that says why none can be chosen."""
    candidates = [entry for entry in entries if entry.suffix in (PYTHON, NOTEBOOK)]
    if not candidates:
        others = f" There is {_listed(entries)}." if entries else ""
        return None, f"There is no Python file and no notebook.{others}"
    if len(candidates) == 1:
        return candidates[0], ""
    if len(candidates) > MOST_CANDIDATES:
        return None, f"There are {len(candidates)} Python files and notebooks, which is too many to choose from."
    wanted = " and ".join(asked)
    defining = [entry for entry in candidates if _defines(entry, kata, asked)]
    if len(defining) == 1:
        return defining[0], ""
    named = [entry for entry in defining or candidates if _is_named(entry, kata)]
    if len(named) == 1:
        return named[0], ""
    if defining:
        count = "none" if not named else len(named)
        called = f"{count} of them {'are' if named else 'is'} called {kata.slug}.py"
        return None, f"{len(defining)} files define {wanted}, and {called}: {_listed(named or defining)}."
    return None, f"None of {len(candidates)} files defines {wanted}: {_listed(candidates)}."


def _defines(entry: Entry, kata: Kata, asked: tuple[str, ...]) -> bool:
    if entry.problem:
        return False
    try:
        return definitions.names(source_of(entry, kata).code).issuperset(asked)
    except UsageError:
        return False


def _is_named(entry: Entry, kata: Kata) -> bool:
    """Whether the file is called as `start` calls it; Canvas puts `-1` behind the name of a second version."""
    stem = entry.parts[-1][: -len(entry.suffix)]
    return re.fullmatch(rf"(?:.*_)?{re.escape(kata.slug)}(?:-.*)?", stem, re.DOTALL) is not None


def source_of(entry: Entry, kata: Kata) -> Source:
    """The source in a Python file or a notebook, for this kata. Raises UsageError."""
    if entry.suffix == NOTEBOOK:
        return notebooks.of_kata(sources.of_notebook(entry.read(MOST_NOTEBOOK_BYTES), entry.name), kata)
    return Source(code=entry.read(files.MOST_BYTES))


def _no_source() -> Source:
    raise UsageError("There is nothing to read.")


def _listed(entries: list[Entry]) -> str:
    names = [f"'{entry.name}'" for entry in entries[:NAMED]]
    return ", ".join(names) + (f" and {len(entries) - NAMED} more" if len(entries) > NAMED else "")
