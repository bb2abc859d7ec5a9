"""The source of what a Python session holds: a class, a function, or the code of a cell, with what it uses of the session.

Nothing is run and nothing is changed. A definition is taken from the text of its cell or file. What it names and does not
define itself is taken from the session too: imports, functions, classes, and constants such as numbers.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attn_kata import local_imports, notebooks, sources
from attn_kata.api import statements
from attn_kata.api.statements import Definition
from attn_kata.catalog import Kata
from attn_kata.errors import UsageError
from attn_kata.readings import origin
from attn_kata.sources import Part, Source

_IMPORTS = "imports and constants of this session"
_DEFERRED = "from __future__ import annotations"
_LONGEST_CONSTANT = 2_000
_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_KNOWN_TO_NOTEBOOKS = ("display", "get_ipython")
_ALSO_SEARCHED = ("torch", "torch.nn.functional", "math", "builtins")  # some of torch's functions name no module


def of_cell(text: str, session: Mapping[str, object], first: str = "") -> Source:
    """The code of a cell by itself, after `first`, its line with the magic. What it uses of the session comes before it."""
    part = Part(name="", text=f"{first}\n{text}" if first else text)
    gathered = _Gathered(session)
    gathered.need(sources.python(part.text)[0])
    return gathered.source(part)


def of_names(kata: Kata, session: Mapping[str, object]) -> Source:
    """What the session has under the names that the kata asks for. Raises UsageError."""
    missing = [entry for entry in kata.entries if not callable(session.get(entry))]
    if missing:
        names = " and ".join(f"'{name}'" for name in missing)
        raise UsageError(
            f"This session has no {names}, which {kata.slug} asks for.",
            next_step=f"Run the cell that defines it, then this one again. For a new stub: %kata_start {kata.slug}",
        )
    gathered = _Gathered(session)
    for entry in kata.entries:
        _checked(session[entry], kata)
        gathered.take(entry, must=True)
    for entry, slug in gathered.written_for.items():
        if slug != kata.slug and entry in kata.entries and notebooks.asks_for(slug, [entry]):
            raise UsageError(
                f"The last cell that ran with '{entry}' is for {slug}.",
                next_step=f"Run the cell for {kata.slug}, then this one again",
            )
    return gathered.source()


def of_object(attempt: object, kata: Kata, *, reads: bool) -> tuple[str, Source, str]:
    """The name of a class or function to show, its source, and its name in there where it is code by other names, else "".

    Code by the kata's contract gets the name that the kata asks for; without `reads`, all code. Raises UsageError.
    """
    shown = _checked(attempt, kata)
    own = statements.unwrapped(attempt)
    module = sys.modules.get(getattr(own, "__module__", None) or "")
    in_python = isinstance(own, (type, types.FunctionType))
    if in_python and module is not None and module.__name__ != "__main__" and getattr(module, "__file__", None):
        name = own.__name__
        source = local_imports.read(Path(str(module.__file__)))
        return shown, *_called(source, name, kata, statements.defined_in(source), reads=reads)
    definition = statements.definition(own)
    session = statements.namespace(own)
    gathered = _Gathered(session)
    gathered.add(definition)
    for entry in kata.entries:  # a kata may ask for several
        if entry != definition.name and callable(session.get(entry)) and len(kata.entries) > 1:
            gathered.take(entry, must=True)
    source = gathered.source()
    return shown, *_called(source, definition.name, kata, statements.defined_in(source), reads=reads)


def _called(source: Source, name: str, kata: Kata, defined: set[str], *, reads: bool) -> tuple[Source, str]:
    """The source as it is, and `name`, where it is code by other names; else with the name that the kata asks for, and "".

    Raises UsageError where that is not clear.
    """
    if reads and origin.is_by_other_names(source.code, name, kata):
        return source, name
    missing = [entry for entry in kata.entries if entry not in defined]
    if not missing or len(kata.entries) == 1:
        alias = "" if not missing or name in kata.entries else f"\n{kata.entries[0]} = {name}\n"
        return Source(code=source.code + alias.encode(), cells=source.cells, notes=source.notes), ""
    names = " and ".join(f"'{entry}'" for entry in missing)
    raise UsageError(
        f"{kata.slug} asks for {names} too.",
        next_step=f"Define {names} in this session, or grade the code: attn_kata.grade('{kata.slug}', source='CODE')",
    )


def _checked(attempt: object, kata: Kata) -> str:
    """The name to show for it. Raises UsageError for what is neither a class nor a function."""
    known = f"attn_kata.grade('{kata.slug}', source='CODE')"
    if isinstance(attempt, type) or inspect.isroutine(attempt):
        return str(attempt.__name__)
    if callable(getattr(attempt, "__wrapped__", None)):  # a decorator of the standard library's kind
        return str(getattr(attempt, "__name__", "attempt"))
    kind = type(attempt).__name__
    if kind in ("ScriptFunction", "OptimizedModule", "RecursiveScriptModule"):
        raise UsageError(f"This is compiled ('{kind}'), and has no source.", next_step="Give what you compiled")
    if isinstance(attempt, functools.partial):
        raise UsageError("A 'partial' has no source.", next_step="Give the function itself")
    if hasattr(type(attempt), "forward") or type(attempt).__module__ == "__main__":
        raise UsageError(
            f"This is an object of the class '{kind}', not the class.",
            next_step=f"attn_kata.grade('{kata.slug}', {kind})",
        )
    raise UsageError(f"An attempt is a class or a function, not '{kind}'.", next_step=f"For code: {known}")


class _Gathered:
    """Definitions of a session, each after those that it uses."""

    def __init__(self, session: Mapping[str, object]) -> None:
        self._session = session
        self._seen: set[str] = set()
        self._lines: list[str] = []
        self._parts: list[Part] = []
        self._notes: list[str] = []
        self.written_for: dict[str, str | None] = {}  # by the name of a definition

    def need(self, text: str) -> None:
        """Take every name that this code uses and does not define."""
        for name in _undefined(text):
            self.take(name)

    def add(self, definition: Definition) -> None:
        """Take a definition, after what it uses."""
        self._seen.add(definition.name)
        self.written_for[definition.name] = definition.written_for
        if definition.deferred and _DEFERRED not in self._lines:
            self._lines.append(_DEFERRED)
        for method in definition.changed:
            self._notes.append(
                f"'{method}' of '{definition.name}' was changed after the class. "
                "This change is not copied: write it in the class."
            )
        self.need(definition.part.text)
        self._parts.append(definition.part)

    def take(self, name: str, *, must: bool = False) -> None:
        """Take what the session has under a name; with `must`, raise UsageError where that cannot be."""
        if name in self._seen or name in _KNOWN_TO_NOTEBOOKS:
            return
        self._seen.add(name)
        if name not in self._session:
            self._notes.append(f"'{name}' is not defined here. Define it, or run the cell that defines it first.")
            return
        value = self._session[name]
        line = None if must else _import_of(name, value) or _constant(name, value)
        if line is not None:
            self._lines.append(line)
            return
        try:
            if _is_alias(value) or not callable(value):
                found = statements.assignment(name, literal=not _is_alias(value))
            else:
                found = statements.definition(statements.unwrapped(value))
        except UsageError:
            if must:
                raise
            found = None
        if found is None:
            kind = type(value).__name__
            self._notes.append(
                f"'{name}' of this session ({kind}) is not copied to the attempt. If your code needs it, define it there."
            )
            return
        self.add(found)
        if found.name != name:
            self._parts.append(Part(name=_IMPORTS, text=f"{name} = {found.name}"))

    def source(self, *last: Part) -> Source:
        """Everything that was taken, then `last`."""
        above = [Part(name=_IMPORTS, text="\n".join(self._lines))] if self._lines else []
        made = sources.joined([*above, *self._parts, *last])
        return Source(code=made.code, cells=made.cells, notes=(*made.notes, *self._notes))


def _undefined(text: str) -> list[str]:
    """The names that this code uses and does not define, in alphabetical order."""
    from pyflakes import checker, messages  # type: ignore[import-untyped]

    try:
        found = checker.Checker(ast.parse(text)).messages
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return sorted({str(one.message_args[0]) for one in found if isinstance(one, messages.UndefinedName)})


def _import_of(name: str, value: Any) -> str | None:
    """The import that gives this value, None where there is none."""
    if isinstance(value, types.ModuleType):
        module = value.__name__
        return f"import {module}" if module == name else f"import {module} as {name}"
    try:
        called = (
            getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or getattr(value, "_name", None)
        )
        homes = (getattr(value, "__module__", None), *_ALSO_SEARCHED)
        if not isinstance(called, str) or not called.isidentifier():
            return None
        for home in homes:
            held = sys.modules.get(home) if isinstance(home, str) and home != "__main__" else None
            if held is not None and vars(held).get(called) is value:
                return f"from {home} import {called} as {name}"
    except Exception:  # an object of the user may do anything when it is asked for an attribute
        return None
    return None


def _constant(name: str, value: object) -> str | None:
    """The assignment that gives this value, None where it is not plain."""
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ in ("dtype", "device"):
        said = repr(value)
        return f"import torch; {name} = {said if said.startswith('torch.') else f'torch.{said}'}"
    if kind is float and value in (float("inf"), float("-inf")):
        return f'{name} = float("{value}")'
    if not _is_plain(value):
        return None
    said = repr(value)
    return f"{name} = {said}" if len(said) <= _LONGEST_CONSTANT else None


def _is_alias(value: object) -> bool:
    """Whether it is a name for a type, such as `Cache = tuple[Tensor, Tensor]`: its statement can run anywhere."""
    named = (typing.TypeVar, typing.ParamSpec, typing.NewType, getattr(typing, "TypeAliasType", typing.TypeVar))
    return isinstance(value, named) or typing.get_origin(value) is not None


def _is_plain(value: object, depth: int = 3) -> bool:
    kind = type(value)
    if kind in _PLAIN:
        return kind is not float or value == value
    if depth and kind in (tuple, list, set) and isinstance(value, (tuple, list, set)):
        return len(value) <= _LONGEST_CONSTANT and all(_is_plain(one, depth - 1) for one in value)
    if depth and isinstance(value, dict) and kind is dict:
        return len(value) <= _LONGEST_CONSTANT and all(
            _is_plain(one, depth - 1) for pair in value.items() for one in pair
        )
    return False
