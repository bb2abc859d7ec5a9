"""Which methods of a class its call uses: what the others do, as a mask that nobody asks for, is no part of the attention."""

from __future__ import annotations

import ast

_ROOTS = ("__init__", "forward", "__call__")


def text(family: list[ast.ClassDef], lines: list[str], more: tuple[str, ...]) -> str:
    """The text of a class and of its bases in the source, the nearest first, without the methods that nothing in it calls.

    `more`: names of methods that are called from outside, beside the constructor and `forward`.
    """
    methods = [(one, part) for one in family for part in one.body if isinstance(part, ast.FunctionDef)]
    names = {part.name for _, part in methods}
    unused = [] if _is_open(family, names) else _unused(methods, {*_ROOTS, *more})
    left_out = {
        line
        for part in unused
        for line in range(min([part.lineno, *(one.lineno for one in part.decorator_list)]), (part.end_lineno or 0) + 1)
    }
    return "\n".join(
        lines[line - 1]
        for one in family
        for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)
        if line not in left_out
    )


def _is_open(family: list[ast.ClassDef], names: set[str]) -> bool:
    """Whether methods may be called in a way that their names do not show, or there is no `forward`."""
    called = {part.func.id for one in family for part in ast.walk(one) if _is_call_by_name(part)}  # type: ignore[attr-defined]
    return not names & {"forward", "__call__"} or "getattr" in called


def _is_call_by_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _unused(methods: list[tuple[ast.ClassDef, ast.FunctionDef]], roots: set[str]) -> list[ast.FunctionDef]:
    nearest: dict[str, ast.FunctionDef] = {}
    for _, part in methods:
        nearest.setdefault(part.name, part)
    used = [part for name, part in nearest.items() if name in roots]
    for part in used:
        for name in _asked_of(part):
            used += [nearest[name]] if name in nearest and nearest[name] not in used else []
        # What a method overrides is used where it calls the one of its base.
        asks_base = any(isinstance(one, ast.Name) and one.id == "super" for one in ast.walk(part))
        used += [other for _, other in methods if asks_base and other.name == part.name and other not in used]
    return [part for _, part in methods if part not in used and not part.name.startswith("__")]


def _asked_of(node: ast.AST) -> set[str]:
    """The names after a dot in it: `split` of `self.split(x)`, and of `Attention.split(x)`."""
    return {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
