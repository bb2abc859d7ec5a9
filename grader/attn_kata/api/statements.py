"""Where a class or function of a Python session is defined: the top-level statement, in the text of its cell or file."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attn_kata.errors import UsageError
from attn_kata.sources import Part, Source


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A top-level statement that defines a name, and where it is."""

    name: str
    part: Part


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
        for value in vars(own).values():
            inner = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
            inner = unwrapped(inner)
            if isinstance(inner, types.FunctionType):
                yield inner


def definition(own: Any) -> Definition:
    """The statement that defines a class or function. Raises UsageError where there is none to be found."""
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
    if isinstance(own, type):  # without methods of its own, nothing says where: the last cell that defines it
        for filename in reversed([*linecache.cache]):
            found = _statement(filename, None, name) if _is_cell(filename) else None
            if found is not None:
                return found
    raise UsageError(
        f"The source of '{name}' cannot be found: Python knows it only for code of a cell or a file.",
        next_step="Give the code as text: source='CODE', or as a file: path='FILE'",
    )


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
        found = Definition(name=name or names[0], part=part)
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
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def defined_in(source: Source) -> set[str]:
    return {name for node in _top_level(source.code.decode("utf-8", "replace")) for name in _bound(node)}


def _shell() -> Any:
    """IPython's shell, None without one. IPython is not imported for this."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get() if get is not None else None


def _is_cell(filename: str) -> bool:
    return filename.startswith("<ipython-input-") or "ipykernel_" in filename


def _cell(filename: str) -> str:
    """What a cell is called, `In [3]`; of a file, its name."""
    numbers: dict[str, int] = getattr(getattr(_shell(), "compile", None), "_filename_map", {})
    if filename in numbers:
        return f"In [{numbers[filename]}]"
    return "this session" if _is_cell(filename) else Path(filename).name
