"""What is graded: Python source, from a file, from the code cells of a notebook, or from bytes.

`read(path).code` is what an engine grades. In a notebook's source every cell follows a line that names it, so a line of the
source belongs to one line of one cell. `Source.located` says so in a report:

    source = sources.read(path)
    report = source.located(engine.grade(slug, source.code, attempt=name))

A notebook is JSON and is read without IPython. Only its code cells are taken. In them, whatever is not Python but IPython's own
(magics, shell lines, help) is replaced by something that does nothing, on the same line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attn_kata import catalog, definitions, files
from attn_kata.errors import UsageError
from attn_kata.report.model import Cell, Report

if TYPE_CHECKING:
    import ast  # imported when it is used: `attn-kata start` does not need it

SUFFIX = ".ipynb"
FILE_ITSELF = "# Above is what the file imports from others. The file itself:"
MOST_NOTEBOOK_BYTES = 100_000_000  # the outputs are in the file too: pictures, and prints of a training
_SMALLER = "Clear its outputs in Jupyter (Edit, Clear Outputs of All Cells), and save it"
_OF_FUTURE = r"from __future__ import [\w, ]+"
_BLANK = b" \t\r\n\xef\xbb\xbf"  # a pipe on Windows puts a mark before text: EF BB BF
_AGAIN = "Open it in Jupyter, save it, and grade it again"


@dataclass(frozen=True, kw_only=True)
class Part:
    """Text of one cell, or a definition from it: what the cell is called, and the number of the text's first line in it."""

    name: str
    text: str
    first: int = 1


@dataclass(frozen=True, kw_only=True)
class Source:
    """Python source as bytes. `cells` says which lines come from which cell, and is empty for a file.

    `notes` are sentences about what was left out.
    """

    code: bytes
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()

    def located(self, report: Report) -> Report:
        """The report of this source, with `cell 3, line 4` wherever it has a line."""
        if not self.cells:
            return report
        return replace(
            report,
            findings=[
                replace(one, place=self._place(one.line), message=self._said(one.message)) for one in report.findings
            ],
            diagnosis=[
                replace(found, mistakes=[replace(one, place=self._place(one.line)) for one in found.mistakes])
                for found in report.diagnosis
            ],
            ungraded_because=self._said(report.ungraded_because),
            stopped_by=self._said(report.stopped_by),
            notes=[*(self._said(note) or "" for note in report.notes), *self._twice(report), *self.notes],
            cells=list(self.cells),
        )

    def _twice(self, report: Report) -> list[str]:
        """A sentence for each name of the kata's contract that is defined more than once in what was graded."""
        if report.outcome == "ungraded" or report.stopped_by is not None:
            return []
        said = []
        for name, lines in definitions.several(self.code, catalog.find(report.kata).entries).items():
            places = ", and again in ".join(self._place(line) or f"line {line}" for line in lines)
            said.append(f"'{name}' is defined in {places}. The last one is graded. Delete the others.")
        return said

    def _place(self, line: int | None) -> str | None:
        return next(
            (cell.place(line) for cell in self.cells if line is not None and cell.first <= line <= cell.last), None
        )

    def _said(self, text: str | None) -> str | None:
        return text and re.sub(r"\bline (\d{1,7})\b", lambda found: self._place(int(found[1])) or found[0], text)


def read(path: Path) -> Source:
    """The source in a Python file or a notebook. Raises UsageError for one that cannot be read, with what to do."""
    if path.suffix.lower() == SUFFIX:
        return of_notebook(files.read(path, most=MOST_NOTEBOOK_BYTES, instead=_SMALLER), files.shown(path))
    return Source(code=files.read(path))


def of_bytes(data: bytes, name: str) -> Source:
    """The source in `data`, which is Python or a notebook. `name` is for the errors. Raises UsageError."""
    if data.lstrip(_BLANK)[:1] == b"{" and b'"nbformat"' in data:
        return of_notebook(data, name)
    if len(data) > files.MOST_BYTES:
        raise UsageError(f"'{name}' has {len(data):,} bytes; an attempt has at most {files.MOST_BYTES:,}.")
    return Source(code=data)


def of_notebook(data: bytes, name: str) -> Source:
    """The code cells of a notebook. A cell is called by its number from the top; cells with text count too."""
    parts = []
    for number, cell in enumerate(_cells(data, name), 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            text = cell.get(
                "source", cell.get("input", cell.get("code", ""))
            )  # "input" before format 4, "code" in format 1
            lines = text if isinstance(text, list) else [text]
            parts.append(Part(name=f"cell {number}", text="".join(line for line in lines if isinstance(line, str))))
    parts, notes = _without_broken_cells(parts)
    if not any(part.text.strip() for part in parts):
        raise UsageError(
            f"The notebook '{name}' has no code in it.", next_step="Write your attempt in a code cell, and save it"
        )
    source = joined(parts)
    if len(source.code) > files.MOST_BYTES:
        raise UsageError(
            f"The code of the notebook '{name}' has {len(source.code):,} bytes; an attempt has at most {files.MOST_BYTES:,}.",
            next_step="Keep only your attempt in it",
        )
    return replace(source, notes=(*source.notes, *notes))


# A definition that may be an attempt, or a part of one: any class, and functions by their names.
_MAY_BE_MEANT = re.compile(
    r"^\s*(?:class |(?:async )?def \w*"
    r"(?:att|head|mask|soft|rop|rot|norm|split|merge|score|cache|emb|enc|proj|qkv|pos|forward))",
    re.MULTILINE | re.IGNORECASE,
)


def _without_broken_cells(parts: list[Part]) -> tuple[list[Part], list[str]]:
    """The cells without those that are no Python and define nothing that may be meant; and a note for each.

    Such as a demo for a newer Python. Functions of one are left out only where another cell has a class.
    """
    kept, notes = [], []
    classes = any(re.search(r"^class ", part.text, re.MULTILINE) for part in parts)
    meant = _MAY_BE_MEANT if classes else re.compile(r"^\s*(?:class|def|async def) ", re.MULTILINE)
    for part in parts:
        lines = re.sub(rf"(?m)^(?={_OF_FUTURE})", "# ", python(part.text)[0]).split("\n")
        wrong = None if meant.search(part.text) else _wrong(lines)
        if wrong is None:
            kept.append(part)
        else:
            notes.append(f"Left out, because it is no valid Python here: {part.name}, line {wrong}.")
    return (kept, notes) if kept else (parts, [])


def joined(parts: Iterable[Part]) -> Source:
    """The source of these parts, one after the other, without what is IPython's own or cannot stand in a module."""
    above = ["# coding: utf-8"]  # in the first line, so that such a line in a cell means nothing
    below: list[str] = []
    places: list[tuple[str, int, int, int]] = []  # name, first line in the cell, first and last line below
    notes = []
    for part in parts:
        text, left_out = python(part.text)
        for at in left_out:
            where = f"{part.name}, line" if part.name else "line"
            notes.append(
                f"Left out, because only a notebook can await: {where} {part.first + at - 1}. If your code needs it, write it "
                "without await."
            )
        lines = text.split("\n")
        for at, line in enumerate(lines):
            if re.match(rf"{_OF_FUTURE}$", line):  # Python wants it before everything else
                above.append(line)
                lines[at] = f"# {line}"
        below += [f"# {part.name}", *lines]
        places.append((part.name, part.first, len(below) - len(lines) + 1, len(below)))
    if any(re.search(r"\bdisplay\s*\(", line) for line in below):
        above.append("display = print  # a notebook has it without an import")
    shift = len(above)
    return Source(
        code="\n".join([*above, *below, ""]).encode("utf-8", "replace"),
        cells=tuple(
            Cell(name=name, first=first + shift, last=last + shift, starts_at=starts_at)
            for name, starts_at, first, last in places
        ),
        notes=tuple(notes),
    )


# ----------------------------------------------------------------------------------------------------- the notebook


def _cells(data: bytes, name: str) -> list[Any]:
    """The cells of a notebook of any format. Raises UsageError."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        if not data.strip():
            raise UsageError(f"The notebook '{name}' is empty.", next_step=_AGAIN) from None
        raise UsageError(f"'{name}' is not a notebook: it is not valid JSON.", next_step=_AGAIN) from None
    if not isinstance(body, dict):
        raise UsageError(f"'{name}' is not a notebook: it has no cells.", next_step=_AGAIN)
    language = _language(body.get("metadata"))
    if language not in ("", "python", "python3", "ipython", "ipython3"):
        raise UsageError(f"The notebook '{name}' is written in '{files.printable(language)}', not in Python.")
    sheets = body.get("worksheets")  # before format 4
    held = sheets if isinstance(sheets, list) else [body]
    found = [sheet["cells"] for sheet in held if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)]
    if not found:
        raise UsageError(f"'{name}' is not a notebook: it has no cells.", next_step=_AGAIN)
    return [cell for cells in found for cell in cells]


def _language(metadata: object) -> str:
    if isinstance(metadata, dict):
        for key, entry in (("language_info", "name"), ("kernelspec", "language")):
            said = metadata.get(key)
            if isinstance(said, dict) and isinstance(said.get(entry), str):
                return str(said[entry]).lower()[:40]
    return ""


# ---------------------------------------------------------------------------------------------------------- a cell

# A cell that begins with one of these is still Python. Every other cell magic means another language, or a file.
_PYTHON_CELLS = ("kata", "time", "timeit", "capture", "prun", "python", "python3", "pypy", "debug", "memit", "mprun")
_ASSIGNED = re.compile(r"(\s*)([\w., ]+?)\s*=\s*[!%].*")
_OWN = re.compile(r"(\s*)(?:[!%].*|\?{1,2}[\w.*%]+\s*|[\w.*%]+\?{1,2}\s*)")
_MOST_OWN_LINES = 300
_LONGEST_CELL = 100_000  # characters; a cell is parsed once for each of its magics


def python(text: str) -> tuple[str, list[int]]:
    """A cell as Python, with the same number of lines, and the lines of statements left out because they await.

    A cell that is no Python stays as it is, and Python says where it is wrong.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0)
    magic = re.match(r"%%(\w*)", lines[first])
    if magic:
        if magic[1] not in _PYTHON_CELLS:
            return "\n".join(f"# {line}" if line.strip() else "" for line in lines), []
        lines[first] = f"# {lines[first]}"
    left_out: list[int] = []
    if len(text) > _LONGEST_CELL:
        return "\n".join(lines), left_out
    for _ in range(_MOST_OWN_LINES):
        wrong = _wrong(lines)
        if wrong is None or not 0 < wrong <= len(lines):
            break
        found = _without(lines[wrong - 1])
        if found is not None:
            end = wrong
            while end < len(lines) and lines[end - 1].endswith("\\"):  # a shell command in several lines
                end += 1
            lines[wrong - 1 : end] = [found, *("" for _ in range(end - wrong))]
            continue
        awaiting = _awaiting(lines)
        if not awaiting:
            break
        for begin, end in awaiting:
            left_out.append(begin)
            lines[begin - 1 : end] = ["pass", *("" for _ in range(end - begin))]
    return "\n".join(lines), left_out


def _wrong(lines: list[str]) -> int | None:
    """The line where Python says that this is no module, or None."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile("\n".join(lines) + "\n", "cell", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def _without(line: str) -> str | None:
    """A line that is IPython's own, replaced by one that does nothing; None for any other line."""
    assigned = _ASSIGNED.fullmatch(line)
    if assigned:
        return f"{assigned[1]}{assigned[2]} = []  # {line.strip()}"
    own = _OWN.fullmatch(line)
    return f"{own[1]}pass  # {line.strip()}" if own else None


def _awaiting(lines: list[str]) -> list[tuple[int, int]]:
    """First and last line of the statements that await outside of a function."""
    import ast

    try:
        body = ast.parse("\n".join(lines) + "\n").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [(one.lineno, one.end_lineno or one.lineno) for one in body if any(_own_awaits(one))]


def _own_awaits(node: ast.AST) -> Iterable[ast.AST]:
    import ast

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return
    if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _own_awaits(child)
