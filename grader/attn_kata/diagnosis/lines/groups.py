"""The line of a mistake in groups of heads, in a cache, or in what is read of pages."""

from __future__ import annotations

import ast
import re

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, line, only_line, role, subject
from attn_kata.diagnosis.lines.values import is_range

_LENGTHS = re.compile(r"(?!len$)\w*len\w*|n_tokens|num_tokens", re.IGNORECASE)

_GROUPS = re.compile(r"g|\w*groups?|\w*kv_?(heads?)?|\w*kv_?h\w*", re.IGNORECASE)


def repeated(program: Program) -> int | None:
    """The first `repeat` of keys or values, all in one function, or the one `h % G`."""
    found = [call for call in program.calls() if callee(call) in ("repeat", "tile") and _of_keys(program, call)]
    if found:
        return _first_of_one_function(program, found)
    return only_line(
        [
            node
            for node in program.nodes
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_group_number(program, node)
        ]
    )


def _of_keys(program: Program, call: ast.Call) -> bool:
    """Whether a call works on keys or values, by the names of what it takes and of what it gives."""
    statement = program.statement(call)
    names = [_name(part) for part in ast.walk(subject(call) or call)]
    if isinstance(statement, ast.Assign):
        names += [_name(part) for target in statement.targets for part in ast.walk(target)]
    return any(role(name) in ("k", "v") for name in names if name)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_group_number(program: Program, node: ast.BinOp) -> bool:
    """Whether `a % b` is a number modulo the number of key-value heads, by its name, and chooses."""
    around = program.parents.get(node)
    chooses = isinstance(around, ast.Subscript | ast.Assign | ast.Tuple) or is_range(program, node.left)
    return chooses and _GROUPS.fullmatch(_name(node.right)) is not None


def _first_of_one_function(program: Program, nodes: list[ast.Call]) -> int | None:
    return line(nodes[0]) if nodes and len({program.scope(node) for node in nodes}) == 1 else None


def joined(program: Program) -> int | None:
    """The first of the two joins of past and new, both in one function."""
    found = [
        call
        for call in program.calls()
        if callee(call) in ("cat", "concat", "concatenate") and _of_keys(program, call) and _has_two_parts(call)
    ]
    return _first_of_one_function(program, found)


def _has_two_parts(call: ast.Call) -> bool:
    parts = call.args[0] if call.args else None
    return isinstance(parts, ast.List | ast.Tuple) and len(parts.elts) == 2


def compared_with_length(program: Program) -> int | None:
    """The one comparison of a position with a length."""
    return only_line(
        [
            node
            for node in program.nodes
            if isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            and any(_LENGTHS.fullmatch(_name(part)) for part in ast.walk(node))
        ]
    )


def cut_at_length(program: Program) -> int | None:
    """The first cut at a length, `[…, :n]`, all in one function, or else the one comparison with a length."""
    found = [
        node
        for node in program.nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Tuple)
        and any(isinstance(part, ast.Slice) and part.lower is None and part.upper for part in node.slice.elts)
        and any(_LENGTHS.fullmatch(_name(part)) or _is_length(program, part) for part in ast.walk(node.slice))
    ]
    if not found:
        return compared_with_length(program)
    return line(found[0]) if len({program.scope(node) for node in found}) == 1 else None


def _is_length(program: Program, node: ast.AST) -> bool:
    """Whether a name holds a number as it was taken from a tensor of lengths."""
    value = program.value(node) if isinstance(node, ast.Name) else None
    as_it_was = value is not None and not any(isinstance(part, ast.BinOp) for part in ast.walk(value))
    return value is not None and as_it_was and any(_LENGTHS.fullmatch(_name(part)) for part in ast.walk(value))


def reshaped_table(program: Program) -> int | None:
    """The one reshape of a table of blocks or pages."""
    return only_line(
        [
            call
            for call in program.calls()
            if callee(call) in ("reshape", "view")
            and any("table" in _name(part).lower() for part in ast.walk(subject(call) or call))
        ]
    )
