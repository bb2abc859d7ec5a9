"""What an attempt imports from files beside it, copied above it: an attempt runs alone, and has no other file to import from.

Of another file only what is needed comes along: the definitions with these names, and what they use in turn, also from further
files. The other file does not run. An import of an installed library stays as it is.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from attn_kata import files, sources
from attn_kata.errors import UsageError
from attn_kata.sources import FILE_ITSELF, Part, Source

MOST_BYTES = 48 << 10  # of all that is copied: more is a project, and no helpers of an attention
MOST_FILES = 20
_LONGEST = 256 << 10  # bytes of one of the files
_MOST_FOLDERS_UP = 5
_ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg")  # a folder with one of them is the top of a project
_INSTALLED = (*sys.stdlib_module_names, "torch", "numpy", "einops", "attn_kata")
_MAY_BE_LOCAL = re.compile(rb"^[ \t]*(?:from[ \t]+\.|(?:from|import)[ \t]+(\w+))", re.MULTILINE)


def read(path: Path) -> Source:
    """The source in a file, below what it imports from files beside it. Raises UsageError for a file that cannot be read."""
    plain = sources.read(path)
    if plain.cells or not _may_import(plain.code):
        return plain
    main = _File.parsed(path.absolute(), plain.code)
    if main is None:
        return plain
    gathered = _Gathered(main)
    return gathered.source() if gathered.changed else replace(plain, notes=tuple(gathered.notes))


def _may_import(code: bytes) -> bool:
    return any(found[1] is None or found[1].decode() not in _INSTALLED for found in _MAY_BE_LOCAL.finditer(code))


@dataclass(kw_only=True, eq=False)
class _File:
    """A file of the project: its text, and for each name at its top level the statements that give it."""

    path: Path
    text: str
    body: list[ast.stmt]
    given: dict[str, list[ast.stmt]] = field(default_factory=dict)

    @classmethod
    def parsed(cls, path: Path, code: bytes) -> _File | None:
        """The file; None where it is no Python in UTF-8, or too long."""
        try:
            text = code.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        file = cls(path=path, text=text, body=body)
        for statement in body:
            for name in _given_by(statement):
                file.given.setdefault(name, []).append(statement)
        return file


@dataclass(frozen=True, kw_only=True)
class _Meaning:
    """What a name in a file stands for. `key` is equal for two names that stand for the same."""

    key: tuple[str, str]
    file: _File
    name: str
    statement: ast.stmt
    library: str = ""  # the import that gives it, for what is of an installed library
    module: _File | None = None  # for what is a module of the project, as a whole


class _Gathered:
    """The definitions of other files that one file needs, each after those that it uses."""

    def __init__(self, main: _File) -> None:
        self._main = main
        self._files: dict[Path, _File | None] = {main.path: main}
        self._taken: dict[str, tuple[str, str]] = {}  # name above the attempt -> what it stands for
        self._seen: set[ast.stmt] = set()
        self._imports: list[str] = []
        self._bytes = 0
        self.changed: list[tuple[ast.stmt, str]] = []  # imports of the main file, and what stands in their place
        self.parts: list[Part] = []
        self.notes: list[str] = []
        for statement in _imports(main.body):
            self._follow(statement)

    def source(self) -> Source:
        """What was taken, and the main file below it."""
        lines = self._main.text.split("\n")
        for statement, instead in reversed(self.changed):
            first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
            before, after = lines[first][: statement.col_offset], lines[last][statement.end_col_offset :]
            lines[first : last + 1] = [f"{before}{instead}{after}", *("" for _ in range(last - first))]
        read = ", ".join(dict.fromkeys(part.name for part in self.parts))
        # A stub says in its first lines what it is for.
        every = [Part(name="", text="\n".join(itertools.takewhile(lambda line: line.startswith("#"), lines)))]
        if self._imports:
            every.append(Part(name="imports of other files", text="\n".join(dict.fromkeys(self._imports))))
        every += self.parts
        every[-1] = replace(every[-1], text=f"{every[-1].text}\n{FILE_ITSELF}")
        made = sources.joined([*every, Part(name="", text="\n".join(lines))])
        said = [f"Read with what it imports from {read}."] if read else []
        return replace(made, notes=(*made.notes, *said, *self.notes))

    # ------------------------------------------------------------------------------------------------- the main file

    def _follow(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Take what an import of the main file names, and keep what stands in its place."""
        if not _is_ascii(self._main.text, statement):
            return
        if isinstance(statement, ast.Import):
            instead = [
                self._module(self._file(self._main, alias.name, 0), alias.asname or alias.name)
                for alias in statement.names
            ]
        elif statement.names[0].name == "*":
            instead = [self._star(self._file(self._main, statement.module or "", statement.level))]
        else:
            instead = [self._name(statement, alias) for alias in statement.names]
        if all(each is not None for each in instead):
            self.changed.append((statement, "; ".join(filter(None, instead)) or "pass"))

    def _name(self, statement: ast.ImportFrom, alias: ast.alias) -> str | None:
        """What stands in the place of one name of `from … import`: "" for nothing, None where it stays an import."""
        called = alias.asname or alias.name
        file = self._file(self._main, statement.module or "", statement.level)
        if file is None or self._meaning(file, alias.name) is None:
            inner = f"{statement.module}.{alias.name}" if statement.module else alias.name
            module = self._file(self._main, inner, statement.level)
            if module is None and file is not None:
                self.notes.append(f"'{files.shown(file.path)}' has no '{alias.name}'.")
            return self._module(module, called)
        meaning = self._meaning(file, alias.name)
        if meaning is not None and meaning.module is not None:
            return self._module(meaning.module, called)
        if not self._take(file, alias.name):
            return None
        return f"{called} = {alias.name}" if called != alias.name else ""

    def _star(self, file: _File | None) -> str | None:
        """The same for `from … import *`: of what that gives, what the main file uses."""
        if file is None:
            return None
        wanted = sorted(_used(self._main.body) - self._main.given.keys())
        return "" if all(self._take(file, name) for name in wanted if self._meaning(file, name)) else None

    def _module(self, file: _File | None, called: str) -> str | None:
        """The same for a module as a whole: an object with what is used of it."""
        if file is None or "." in called:
            return None
        users = [one for one in self._files.values() if one is not None and (one is self._main or called in one.given)]
        bodies = [statement for one in users for statement in one.body]
        asked = sorted(name for name in _attributes(bodies, called) if not name.startswith("__"))
        names = [name for name in asked if self._meaning(file, name)]
        self.notes += [f"'{files.shown(file.path)}' has no '{name}'." for name in asked if name not in names]
        if not all(self._take(file, name) for name in names):
            return None
        held = ", ".join(f"{name}={name}" for name in names)
        return f"{called} = __import__('types').SimpleNamespace({held})"

    # -------------------------------------------------------------------------------------------------- other files

    def _take(self, file: _File, name: str) -> bool:
        """Copy what a name in a file stands for, after what that uses. False where the name is in use for another thing."""
        meaning = self._meaning(file, name)
        if meaning is None or meaning.file is self._main:
            return True
        own = self._meaning(self._main, name)
        known = self._taken.get(name) or (own.key if own is not None else meaning.key)
        if known != meaning.key:
            where = files.shown(file.path)
            self.notes.append(f"'{name}' of {where} is not read: there is another '{name}'. Rename one of them.")
            return False
        if name in self._taken:
            return True
        self._taken[name] = meaning.key
        if meaning.library:
            self._imports.append(meaning.library)
            return True
        if meaning.module is not None:
            line = self._module(meaning.module, name)
            self.parts.append(Part(name=files.shown(file.path), text=line or "pass"))
            return line is not None
        if meaning.name != name:
            held = self._take(meaning.file, meaning.name)
            self.parts.append(Part(name=files.shown(file.path), text=f"{name} = {meaning.name}"))
            return held
        return all(self._copy(meaning.file, one) for one in meaning.file.given[name])

    def _copy(self, file: _File, statement: ast.stmt) -> bool:
        """Copy one statement of another file, after what it uses."""
        if statement in self._seen:
            return True
        self._seen.add(statement)
        first, last = _lines_of(statement)
        text = "\n".join(file.text.split("\n")[first - 1 : last])
        self._bytes += len(text.encode())
        if self._bytes > MOST_BYTES:
            self.notes.append(f"Not all that it imports is read: that is more than {MOST_BYTES >> 10} KB.")
            return False
        held = all(self._take(file, used) for used in sorted(_used([statement])))
        self.parts.append(Part(name=files.shown(file.path), text=text, first=first))
        return held

    def _meaning(self, file: _File, name: str, depth: int = 8) -> _Meaning | None:
        """What a name in a file stands for; None for a name that the file does not give."""
        if not depth:
            return None
        if name not in file.given:
            inner = (self._file(file, one.module or "", one.level) for one in _stars(file.body))
            found = (self._meaning(each, name, depth - 1) for each in inner if each is not None)
            return next(filter(None, found), None)
        statement = file.given[name][-1]
        for one in _imports([statement]):
            for alias in one.names:
                if _called(alias) != name:
                    continue
                level = one.level if isinstance(one, ast.ImportFrom) else 0
                module = one.module or "" if isinstance(one, ast.ImportFrom) else alias.name
                inner_file = self._file(file, module, level)
                if inner_file is None and not level:
                    return _of_library(file, statement, one, alias)
                found_there = (
                    self._meaning(inner_file, alias.name, depth - 1)
                    if inner_file is not None and isinstance(one, ast.ImportFrom)
                    else None
                )
                if found_there is not None:
                    return found_there
                if isinstance(one, ast.ImportFrom):
                    inner_file = self._file(file, ".".join(filter(None, [one.module, alias.name])), level)
                if inner_file is not None:
                    key = ("module", str(inner_file.path))
                    return _Meaning(key=key, file=file, name=name, statement=statement, module=inner_file)
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return None
        return _Meaning(key=(str(file.path), name), file=file, name=name, statement=statement)

    def _file(self, base: _File, module: str, level: int) -> _File | None:
        """The file of a module that `base` imports, where it belongs to the same project."""
        if not level and module.partition(".")[0] in _INSTALLED:
            return None
        names = [name for name in module.split(".") if name]
        folders = [base.path.parent, *base.path.parent.parents]
        for folder in folders[level - 1 : level] if level else _bases(base.path):
            inner = folder.joinpath(*names)
            for path in ([inner.with_suffix(".py")] if names else []) + [inner / "__init__.py"]:
                file = self._parsed(path)
                if file is not None:
                    return file
        return None

    def _parsed(self, path: Path) -> _File | None:
        if path not in self._files:
            self._files[path] = None
            with contextlib.suppress(UsageError, OSError, ValueError):
                if path.is_file() and sum(one is not None for one in self._files.values()) < MOST_FILES:
                    self._files[path] = _File.parsed(path, files.read(path, most=_LONGEST))
        return self._files[path]


# ------------------------------------------------------------------------------------------------------- statements


def _of_library(file: _File, statement: ast.stmt, one: ast.Import | ast.ImportFrom, alias: ast.alias) -> _Meaning:
    """A name that an import of an installed library gives."""
    name = _called(alias)
    renamed = f" as {alias.asname}" if alias.asname else ""
    if isinstance(one, ast.ImportFrom):
        target, whole = f"{one.module}.{alias.name}", f"from {one.module} import {alias.name}{renamed}"
    else:
        target, whole = alias.name if alias.asname else name, f"import {alias.name}{renamed}"
    return _Meaning(key=("", target), file=file, name=name, statement=statement, library=whole)


def _called(alias: ast.alias) -> str:
    """The name that an import gives."""
    return alias.asname or alias.name.partition(".")[0]


def _imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import, also in functions and conditions, but not in what runs for a script only."""
    for statement in body:
        is_script = isinstance(statement, ast.If) and "__name__" in _used([statement.test])
        for node in () if is_script else ast.walk(statement):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield node


def _stars(body: Iterable[ast.stmt]) -> Iterator[ast.ImportFrom]:
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            yield statement


def _given_by(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top level gives."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {_called(alias) for alias in statement.names} - {"*"}
    if isinstance(statement, (ast.If, ast.Try, ast.With)):
        inner = [*getattr(statement, "body", []), *getattr(statement, "orelse", [])]
        inner += [each for handler in getattr(statement, "handlers", []) for each in handler.body]
        return {name for each in inner for name in _given_by(each)}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _used(body: Iterable[ast.AST]) -> set[str]:
    return {node.id for one in body for node in ast.walk(one) if isinstance(node, ast.Name)}


def _attributes(body: Iterable[ast.stmt], name: str) -> set[str]:
    """The attributes of `name` that are used: of `masks`, in `masks.causal(4)`, it is `causal`."""
    return {
        node.attr
        for one in body
        for node in ast.walk(one)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }


def _lines_of(statement: ast.stmt) -> tuple[int, int]:
    """First and last line, decorators too."""
    first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
    return first, statement.end_lineno or statement.lineno


def _is_ascii(text: str, statement: ast.stmt) -> bool:
    """Whether columns count characters: they count bytes."""
    return "\n".join(text.split("\n")[statement.lineno - 1 : statement.end_lineno]).isascii()


def _bases(path: Path) -> list[Path]:
    """The folders that an absolute import may start from: that of the file, and those above it in its project."""
    found: list[Path] = []
    for folder in [path.parent, *path.parent.parents][:_MOST_FOLDERS_UP]:
        if folder in (Path.home(), Path(folder.anchor)):
            break
        found.append(folder)
        if any((folder / name).exists() for name in _ROOTS):
            break
    return found
