"""The rooms of the package import one another in one direction. A new arrow fails here, with its file and line.

A room is a folder of `attn_kata`. A module that lies beside the folders is part of the ground, on which every face stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import attn_kata

PACKAGE = Path(attn_kata.__file__).parent
GROUND = "ground"

# What each room may import. Whatever is not said here is a new arrow.
MAY_IMPORT: dict[str, set[str]] = {
    # faces
    "cli": {"watch", "interview", "classroom", "authoring", "rounds", "engine", "readings", "report", GROUND},
    "watch": {"rounds", "engine", "readings", "report", GROUND},
    "interview": {"rounds", "engine", "report", GROUND},
    "classroom": {"engine", "report", GROUND},
    "notebook": {"api", "engine", "readings", "report", GROUND},
    "api": {"engine", "readings", "report", GROUND},
    "authoring": {"engine", "grading", "diagnosis", "properties", "report", GROUND},
    "rounds": {"report", GROUND},
    # the grader, downwards
    "engine": {"grading", "properties", "attempt", "sandbox", "protocol", "report", GROUND},
    "grading": {"readings", "diagnosis", "properties", "protocol", "report", GROUND},
    "readings": {"diagnosis", "properties", "protocol", GROUND},
    "diagnosis": {"properties", "report", GROUND},
    "properties": {"protocol", "report"},
    # beside the candidate's code: nothing of ours but what carries bytes and what confines
    "attempt": {"protocol", "sandbox"},
    "protocol": set(),
    "sandbox": set(),
    # values
    "report": {GROUND},
    GROUND: {"report"},
}

# What each folder inside of `readings/` may import of the others; its modules beside the folders are open to all.
INSIDE_READINGS: dict[str, set[str]] = {
    "source": set(),
    "candidates": {"source"},
    "adapters": {"candidates", "source"},
    "asking": {"candidates", "source"},
    "searching": {"adapters", "asking", "candidates", "source"},
}

# Arrows of single files, each with its reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("grading/local.py", "attempt"): "runs our own references and mutants the way an attempt is run",
    ("grading/loopback.py", "attempt"): "runs our own attempts with the bytes of two processes in one",
    ("cli/review.py", "diagnosis"): "says what a mistake is when the review is over; `catalogue` loads no torch",
    ("cli/explain.py", "diagnosis"): "explains the mistakes that the diagnosis knows; `catalogue` loads no torch",
    (
        "classroom/mistakes.py",
        "diagnosis",
    ): "the ids for a rubric, and words without numbers; `catalogue` loads no torch",
    (
        "authoring/handout.py",
        "interview",
    ): "checks what an interview is made of; `content` is the reader of interview.toml",
    ("authoring/library.py", "interview"): "lists the formulas that interview.toml can name",
    ("__init__.py", "api"): "exposes the Python API, which is imported when it is used",
    ("__init__.py", "notebook"): "%load_ext attn_kata",
    ("api/reference.py", "cli"): "`explain` gives the text of the command; it needs no torch",
    ("api/grading.py", "cli"): "refuses during a mock interview, as the command does",
    ("notebook/magics.py", "cli"): "the same for hints and references",
    ("notebook/completion.py", "cli"): "completes what the command explains",
    ("pytest_plugin.py", "grading"): "imports the fixtures only where pytest meets a hidden test",
    ("__main__.py", "cli"): "python -m attn_kata is the command",
}


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """An import of one module of the package by another."""

    file: str  # relative to the package, with "/"
    line: int
    imported: tuple[str, ...]  # the dotted name, without the package's own

    @property
    def origin(self) -> str:
        return room(tuple(self.file.removesuffix(".py").split("/")))

    @property
    def target(self) -> str:
        return room(self.imported, is_folder=len(self.imported) == 1 and self.imported[0] in MAY_IMPORT)

    def __str__(self) -> str:
        return f"{self.origin} → {self.target}, in {self.file} line {self.line}"


def room(path: tuple[str, ...], *, is_folder: bool = False) -> str:
    """The room of a module by its path; of a folder itself where it is one."""
    return path[0] if is_folder or len(path) > 1 else GROUND


@cache
def arrows(package: Path) -> list[Arrow]:
    """Every import between modules of a package, those inside of functions too."""
    found = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = imported_names(node, package, path)
            found += [Arrow(file=file, line=node.lineno, imported=name) for name in names]  # type: ignore[attr-defined]
    return found


def imported_names(node: ast.AST, package: Path, path: Path) -> Iterator[tuple[str, ...]]:
    """The package's modules that a node imports, as dotted names in parts."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            first, *rest = alias.name.split(".")
            if first == package.name and rest:
                yield tuple(rest)
    if isinstance(node, ast.ImportFrom):
        base = [*(node.module.split(".") if node.module else [])]
        if node.level:
            folder = path.parents[node.level - 1]
            base = [package.name, *folder.relative_to(package).parts, *base]
        if base[:1] != [package.name]:
            return
        for alias in node.names:
            whole = (*base[1:], alias.name)
            if is_module(package, whole):
                yield whole
            elif base[1:]:
                yield tuple(base[1:])


def is_module(package: Path, name: tuple[str, ...]) -> bool:
    at = package.joinpath(*name)
    return at.is_dir() or at.with_suffix(".py").is_file()


def new_arrows(package: Path) -> list[str]:
    """The arrows of a package that no rule allows."""
    return [
        str(arrow)
        for arrow in arrows(package)
        if arrow.origin != arrow.target
        and arrow.target not in MAY_IMPORT.get(arrow.origin, set())
        and (arrow.file, arrow.target) not in EXCEPTIONS
    ]


def circle(package: Path) -> list[str]:
    """Rooms that import one another in a circle; empty where there is none. On the ground each module is its own room."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows(package):
        origin = arrow.origin if arrow.origin != GROUND else arrow.file.removesuffix(".py")
        target = arrow.target if arrow.target != GROUND else arrow.imported[0]
        if origin != target:
            graph.setdefault(origin, set()).add(target)

    def follow(way: list[str]) -> list[str]:
        for then in sorted(graph.get(way[-1], ())):
            if then in way:
                return [*way[way.index(then) :], then]
            if then not in done and (found := follow([*way, then])):
                return found
        done.add(way[-1])
        return []

    done: set[str] = set()
    return next((found for start in sorted(graph) if (found := follow([start]))), [])


def test_every_import_follows_an_arrow_that_is_allowed():
    assert new_arrows(PACKAGE) == []


def test_every_room_has_a_rule():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").is_file()}

    assert sorted(rooms - set(MAY_IMPORT)) == []
    assert sorted(set(MAY_IMPORT) - rooms) == [GROUND]


def test_there_is_no_circle():
    assert circle(PACKAGE) == []


def test_a_report_is_a_value_that_needs_nothing_of_ours():
    assert [str(arrow) for arrow in arrows(PACKAGE) if arrow.file == "report/model.py"] == []


def test_every_exception_is_still_needed():
    used = {(arrow.file, arrow.target) for arrow in arrows(PACKAGE)}

    assert sorted(set(EXCEPTIONS) - used) == []


def test_the_folders_of_readings_import_one_another_in_one_direction():
    folders = {path.name for path in (PACKAGE / "readings").iterdir() if (path / "__init__.py").is_file()}
    inside = [one for one in arrows(PACKAGE) if one.file.startswith("readings/") and one.imported[0] == "readings"]
    crossing = [
        (origin, one.imported[1], one.file)
        for one in inside
        if (origin := one.file.split("/")[1]) in folders and one.imported[1] in folders - {origin}
    ]

    assert folders == set(INSIDE_READINGS)
    assert [one for one in crossing if one[1] not in INSIDE_READINGS[one[0]]] == []
    assert {one[0] for one in crossing} == {one for one, others in INSIDE_READINGS.items() if others}


# ------------------------------------------------------------------------------------------------- the test, tested


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """A package of three rooms and one module of the ground, without an arrow."""
    package = tmp_path / "attn_kata"
    for name in ("attempt", "diagnosis", "protocol"):
        (package / name).mkdir(parents=True)
        for file in ("__init__.py", "x.py"):
            (package / name / file).touch()
    (package / "__init__.py").touch()
    (package / "catalog.py").touch()
    return package


@pytest.mark.parametrize(
    "line",
    [
        "import attn_kata.diagnosis.x",
        "import attn_kata.diagnosis as d",
        "from attn_kata import diagnosis",
        "from attn_kata.diagnosis import x",
        "from attn_kata.diagnosis.x import anything",
        "from ..diagnosis import x",
        "from .. import diagnosis",
    ],
)
def test_a_new_arrow_is_reported_however_it_is_written(made_up: Path, line: str) -> None:
    (made_up / "attempt" / "x.py").write_text(f"import torch\n\n\ndef later():\n    {line}\n")

    assert new_arrows(made_up) == ["attempt → diagnosis, in attempt/x.py line 5"]


def test_an_arrow_to_the_ground_is_reported_too(made_up: Path) -> None:
    (made_up / "attempt" / "x.py").write_text("from attn_kata import catalog\n")

    assert new_arrows(made_up) == ["attempt → ground, in attempt/x.py line 1"]


def test_what_is_allowed_and_what_is_not_ours_is_not_reported(made_up: Path) -> None:
    (made_up / "attempt" / "x.py").write_text(
        "import json\nfrom attn_kata.protocol import x\nfrom attn_kata.attempt import y\nfrom attn_kata import __version__\n"
    )

    assert new_arrows(made_up) == []


def test_a_circle_is_reported(made_up: Path) -> None:
    (made_up / "attempt" / "x.py").write_text("from attn_kata.protocol import x\n")
    (made_up / "protocol" / "x.py").write_text("def later():\n    from attn_kata import catalog\n")
    (made_up / "catalog.py").write_text("import attn_kata.attempt.x\n")

    assert circle(made_up) == ["attempt", "protocol", "catalog", "attempt"]
