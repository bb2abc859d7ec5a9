"""The live part of a source: module code, the entry points of a kata, and everything that they use."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from attn_kata.errors import AttnKataError

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition = (*Function, ast.ClassDef)


@lru_cache(maxsize=1)
def entry_points() -> frozenset[str]:
    """The entry points of all katas; empty if the katas cannot be read."""
    from attn_kata import catalog

    try:
        return frozenset(name for kata in catalog.katas() for name in kata.entries)
    except (AttnKataError, OSError):
        return frozenset()


def live(tree: ast.Module, *, every: bool = False) -> list[ast.AST]:
    """The nodes that can run. With `every`, or without a known entry point, each definition of the module counts as one."""
    top = [node.name for node in tree.body if isinstance(node, Definition)]
    entries = set() if every else {name for name in top if name in entry_points()}
    used = entries or set(top)
    waiting: dict[str, list[ast.AST]] = {}  # definitions, until something uses the name
    todo: list[ast.AST] = [tree]
    found: list[ast.AST] = []

    while todo:
        stack = [todo.pop()]
        while stack:
            node = stack.pop()
            found.append(node)
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name is not None and name not in used:
                used.add(name)
                todo.extend(waiting.pop(name, ()))
            for child in _children(node):
                if not isinstance(child, Definition):
                    stack.append(child)
                elif child.name in used or (isinstance(node, ast.ClassDef) and child.name in _CALLED_BY_TORCH):
                    todo.append(child)
                else:
                    waiting.setdefault(child.name, []).append(child)
    return found


_CALLED_BY_TORCH = ("__init__", "forward", "__call__")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node, without dead code after a return and without redefined names."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield value
        elif isinstance(value, list):
            last = {child.name: child for child in value if isinstance(child, Definition)}
            for child in value:
                if not isinstance(child, ast.AST) or _never(child):
                    continue
                if not isinstance(child, Definition) or last[child.name] is child:
                    yield child
                if isinstance(child, ast.Return | ast.Raise | ast.Continue | ast.Break):
                    break


def _never(node: ast.AST) -> bool:
    """Whether a statement is `if __name__ == …` or `if False`."""
    if not isinstance(node, ast.If):
        return False
    if isinstance(node.test, ast.Constant):
        return not node.test.value and not node.orelse
    return isinstance(node.test, ast.Compare) and any(
        isinstance(side, ast.Name) and side.id == "__name__" for side in (node.test.left, *node.test.comparators)
    )
