"""How the rest of a source uses a definition: what its own callers give it."""

from __future__ import annotations

import ast
import re
import textwrap

from attn_kata.readings.structure import Definition, Structure

_ANOTHER_LENGTH = re.compile(r"enc|mem|src|source|context|cond|^e_", re.IGNORECASE)


def is_given_another_length(definition: Definition, structure: Structure) -> bool:
    """Whether a class of the source calls it with its own tokens as query and those of an encoder as keys."""
    return any(_crosses(call) for other in structure.definitions for call in _calls(definition, other))


def _calls(definition: Definition, other: Definition) -> list[ast.Call]:
    """The calls of modules of this definition in another class."""
    if not other.is_class or not other.uses(definition):
        return []
    annotated = [one.name for one in other.build if re.search(rf"\b{re.escape(definition.name)}\b", one.annotation)]
    held = {name for name, made in other.layers.items() if made == definition.name} | set(annotated)
    return [
        one
        for one in ast.walk(ast.parse(textwrap.dedent(other.text)))
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and isinstance(one.func.value, ast.Name)
        and one.func.value.id == "self"
        and one.func.attr in held
    ]


def _crosses(call: ast.Call) -> bool:
    if len(call.args) < 2:
        return False
    query, key = (_names(one) for one in call.args[:2])
    return bool(query and key) and not query & key and any(map(_ANOTHER_LENGTH.search, key))


def _names(node: ast.expr) -> set[str]:
    """The variables in an expression."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and one.id != "self"}
