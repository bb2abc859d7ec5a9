"""The attributes and names that code reads and that nothing in the file sets."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import on_self

_MODULES = frozenset(("nn.Module", "torch.nn.Module", "Module"))
# What may set an attribute without its name after a dot.
_BY_NAME = re.compile(
    r"[gs]etattr\(|__dict__|__slots__|locals\(|vars\(|update\(|(?:add|register)_module\("
    r"|register_(?:buffer|parameter)\((?!(?:name=)?')"
)
_REGISTERED = re.compile(r"register_(?:buffer|parameter)\((?:name=)?'(\w+)'")


def names_read(program: Program, names: Collection[str]) -> list[ast.AST]:
    """Where a function reads one of these names, and sets it nowhere itself."""
    found: list[ast.AST] = []
    for node in program.nodes:
        around = program.function(node)
        if not isinstance(node, ast.Name) or node.id not in names or around is None:
            continue
        inside = [one for one in ast.walk(around) if isinstance(one, ast.Name) and one.id == node.id]
        if all(isinstance(one.ctx, ast.Load) for one in inside):
            found.append(node)
    return found


def never_set(program: Program) -> list[ast.Attribute]:
    """Where a class that is an nn.Module and nothing else reads `self.x`, and nothing in the file sets an `x`."""
    every = list(ast.walk(program.tree))
    stored = {one.attr for one in every if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Load)}
    return [
        read
        for owner in every
        if isinstance(owner, ast.ClassDef) and owner.bases and {ast.unparse(base) for base in owner.bases} <= _MODULES
        for read in _read_and_not_set(owner, stored)
    ]


def _read_and_not_set(owner: ast.ClassDef, stored: set[str]) -> list[ast.Attribute]:
    from torch import nn  # only here: the rest of `lines` needs none

    text = ast.unparse(owner)
    if _BY_NAME.search(text):
        return []
    inside = list(ast.walk(owner))
    defined = {name for one in inside for name in _defines(one)} | set(_REGISTERED.findall(text))
    known = stored | defined | set(dir(nn.Module()))
    return [
        one
        for one in inside
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load) and on_self(one) and one.attr not in known
    ]


def _defines(node: ast.AST) -> list[str]:
    """The name that a node defines: of a method, of an attribute of the class, with an annotation or without."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []
