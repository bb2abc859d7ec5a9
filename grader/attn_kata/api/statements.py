"""Where a class or function of a Python session is defined: the top-level statement, in the text of its cell or file."""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import re
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attn_kata import notebooks
from attn_kata.errors import UsageError
from attn_kata.sources import Part, Source


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A top-level statement that defines a name, and where it is."""

    name: str
    part: Part
    changed: tuple[str, ...] = ()  # methods that a class was given after its statement: `MyAttention.forward = forward`
    written_for: str | None = None  # the kata whose stub is in its cell
    deferred: bool = False  # under `from __future__ import annotations`, which a cell has from any cell before it


def unwrapped(thing: Any) -> Any:
    """What is under decorators that say so."""
    try:
        return inspect.unwrap(thing)
    except ValueError:  # it wraps itself
        return thing


def namespace(own: Any) -> Mapping[str, object]:
    """The session in which a class or function was defined."""
    for function in _functions(own):
        return function.__globals__
    return vars(sys.modules["__main__"])


def _functions(own: Any) -> Iterator[types.FunctionType]:
    """A function itself, or the methods of a class."""
    if isinstance(own, types.FunctionType):
        yield own
    elif isinstance(own, type):
        yield from (function for _, function in _methods(own))


def _methods(own: type) -> Iterator[tuple[str, types.FunctionType]]:
    """The functions of a class, by name."""
    for name, value in vars(own).items():
        inner = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
        inner = unwrapped(inner)
        if isinstance(inner, types.FunctionType):
            yield name, inner


def definition(own: Any) -> Definition:
    """The statement that defines a class or function. Raises UsageError where there is none to be found."""
    found = _found(own)
    deferred = any(one.__code__.co_flags & __future__.annotations.compiler_flag for one in _functions(own))
    return replace(found, changed=_changed(own, found.part), deferred=deferred)


def _changed(own: Any, part: Part) -> tuple[str, ...]:
    last = part.first + part.text.count("\n")
    return tuple(
        name
        for name, function in (_methods(own) if isinstance(own, type) else ())
        if _is_cell(function.__code__.co_filename)
        and "<locals>" not in function.__qualname__.removeprefix(own.__qualname__)  # what a decorator made
        and not re.search(rf"^\s+{re.escape(name)}\s*=", part.text, re.MULTILINE)  # the statement says so itself
        and not (
            _cell(function.__code__.co_filename) == part.name and part.first <= function.__code__.co_firstlineno <= last
        )
    )


def _found(own: Any) -> Definition:
    name = str(getattr(own, "__name__", "attempt"))
    if isinstance(own, types.FunctionType) and name == "<lambda>":
        found = _statement(own.__code__.co_filename, own.__code__.co_firstlineno, None)
        if found is not None:
            return found
        raise UsageError(
            "A lambda inside a call has no source of its own.", next_step="Write it as a function, with def"
        )
    if "<locals>" in getattr(own, "__qualname__", ""):
        raise UsageError(
            f"'{name}' is defined inside a function, or a decorator replaced it by a function of its own.",
            next_step="Define it at the top level of a cell or file, without the decorator",
        )
    for function in _functions(own):
        code = function.__code__
        found = _statement(code.co_filename, code.co_firstlineno, name)
        if found is not None:
            return found
    found = assignment(name) if isinstance(own, type) else None  # without methods of its own, nothing says where
    if found is not None:
        return found
    raise UsageError(
        f"The source of '{name}' cannot be found: Python knows it only for code of a cell or a file.",
        next_step="Write it in a cell, or give the code as text: source='CODE', or as a file: path='FILE'",
    )


def assignment(name: str, *, literal: bool = False) -> Definition | None:
    """The last statement of the session that binds this name; None where there is none to be found.

    `literal`: only if its value is written out, such as the `{}` of a table that was filled since.
    """
    found = next(filter(None, (_statement(filename, None, name) for filename in _texts())), None)
    return None if found is None or (literal and not _is_literal(found.part.text)) else found


def _is_literal(statement: str) -> bool:
    try:
        ast.literal_eval(statement.partition("=")[2].strip())
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _texts() -> Iterator[str]:
    """The cells of the session, the one that ran last first; of a script, its file."""
    numbers = _numbers()
    yield from sorted(filter(_is_cell, [*linecache.cache]), key=lambda filename: numbers.get(filename, 0), reverse=True)
    script = getattr(sys.modules["__main__"], "__file__", None)
    if isinstance(script, str):
        yield script


def _statement(filename: str, line: int | None, name: str | None) -> Definition | None:
    """The top-level statement of a file or cell that contains `line` and defines `name`, or any one name."""
    text = "".join(linecache.getlines(filename))
    found = None
    for node in _top_level(text):
        begin = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        end = node.end_lineno or node.lineno
        names = _bound(node)
        if not names or (name is not None and name not in names) or (line is not None and not begin <= line <= end):
            continue
        lines = text.split("\n")[begin - 1 : end]
        indent = len(lines[0]) - len(lines[0].lstrip())  # under `if` or `try`
        part = Part(name=_cell(filename), text="\n".join(line[indent:] for line in lines), first=begin)
        found = Definition(name=name or names[0], part=part, written_for=notebooks.written_for(text.encode()))
    return found


def _top_level(text: str) -> Iterator[ast.stmt]:
    """The statements outside of functions and classes."""
    try:
        waiting: list[ast.stmt] = list(ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            handlers = [one for child in getattr(node, "handlers", []) for one in child.body]
            waiting = [*inner, *handlers, *waiting]


def _bound(node: ast.stmt) -> list[str]:
    """The names that a definition or a plain assignment binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, getattr(ast, "TypeAlias", ())):  # `type Cache = ...`, from Python 3.12
        return [node.name.id]  # type: ignore[attr-defined]  # mypy looks with the oldest Python
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def defined_in(source: Source) -> set[str]:
    return {name for node in _top_level(source.code.decode("utf-8", "replace")) for name in _bound(node)}


def _shell() -> Any:
    """IPython's shell, None without one. IPython is not imported for this."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get() if get is not None else None


def _numbers() -> dict[str, int]:
    """Which cell was run as which `In [3]`, by the name that Python knows it by. A cell that ran twice has its last number."""
    return dict(getattr(getattr(_shell(), "compile", None), "_filename_map", {}))


def _is_cell(filename: str) -> bool:
    return filename.startswith("<ipython-input-") or "ipykernel_" in filename


def _cell(filename: str) -> str:
    """What a cell is called, `In [3]`; of a file, its name."""
    number = _numbers().get(filename)
    if number is not None:
        return f"In [{number}]"
    return "this session" if _is_cell(filename) else Path(filename).name
