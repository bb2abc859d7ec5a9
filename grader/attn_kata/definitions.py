"""The katas that a file is written for, told by the functions and classes that it defines. Runs nothing of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from attn_kata import catalog
from attn_kata.catalog import Kata

if TYPE_CHECKING:
    import ast

_FRAMEWORKS = ("tensorflow", "keras", "jax", "flax", "mxnet", "paddle", "mlx", "numpy")
MOST_BYTES = 64 << 10  # parsing a megabyte can take half a minute


def names(source: bytes) -> set[str]:
    """The functions and classes that `source` defines at its top level; empty for what is no Python or too long."""
    import ast  # only here: most files have the name of their kata

    return {node.name for node in _body(source) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def several(source: bytes, asked: Iterable[str]) -> dict[str, list[int]]:
    """Where each of the names in `asked` is defined that is defined more than once: the lines."""
    import ast

    lines: dict[str, list[int]] = {name: [] for name in asked}
    for node in _body(source):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in lines:
            beside = " ".join(map(ast.unparse, [*node.decorator_list, *getattr(node, "bases", [])]))
            if re.search(rf"\b({node.name}|overload)\b", beside):  # `class A(A)` goes on with the A before it
                lines[node.name].clear()
            else:
                lines[node.name].append(node.lineno)
    return {name: found for name, found in lines.items() if len(found) > 1}


def imported(source: bytes) -> set[str]:
    """The packages that `source` imports at its top level."""
    import ast

    body = _body(source)
    names = [one.name for node in body if isinstance(node, ast.Import) for one in node.names]
    return {*names, *(node.module for node in body if isinstance(node, ast.ImportFrom) and node.module)}


def other_framework(packages: Iterable[str]) -> str:
    """The library that a source with these imports computes with, where it does not import torch; "" where it does."""
    roots = {package.partition(".")[0] for package in packages}
    return "" if "torch" in roots else next((one for one in _FRAMEWORKS if one in roots), "")


def syntax_error(source: bytes) -> str | None:
    """What makes `source` no Python, with its line; None for Python, and for what cannot be told."""
    import ast

    if len(source) > MOST_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except SyntaxError as error:
        return f"{error.msg}, line {error.lineno}"
    except (ValueError, RecursionError, MemoryError):
        return None
    return None


def _body(source: bytes) -> list[ast.stmt]:
    """The statements at the top level; none for what is no Python or too long."""
    import ast

    if len(source) > MOST_BYTES:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
        return []


def katas(source: bytes) -> list[Kata]:
    """The katas whose entry points are all in `source`; if there is none, those of which one is.

    Of several with the same entry points, those that are called with as many arguments, if there are any.
    """
    defined = names(source)
    every = catalog.katas() if defined else []
    whole = [kata for kata in every if defined.issuperset(kata.entries)]
    found = whole or [kata for kata in every if defined.intersection(kata.entries)]
    if len({kata.entries for kata in found}) == 1 < len(found):
        alike = [kata for kata in found if _required(source, kata) == _required(kata.solution.read_bytes(), kata)]
        return alike or found
    return found


def _required(source: bytes, kata: Kata) -> dict[str, int]:
    """How many arguments without a default each of the kata's entry points takes: a function, or a module's `forward`."""
    import ast

    required = {}
    for node in ast.parse(source).body:
        if getattr(node, "name", None) not in kata.entries:
            continue
        methods = [one for one in getattr(node, "body", []) if getattr(one, "name", None) == "forward"]
        called = methods[-1] if isinstance(node, ast.ClassDef) and methods else node
        if isinstance(called, ast.FunctionDef):
            required[str(getattr(node, "name", ""))] = len(called.args.args) - len(called.args.defaults)
    return required
