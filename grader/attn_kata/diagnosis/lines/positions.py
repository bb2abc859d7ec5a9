"""The line of a mistake in what is made of positions: turned pairs, slopes with distances, windows with sinks."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, number, only_line, subject

Test = Callable[[Program, ast.AST], bool]


def only(test: Test) -> Callable[[Program], int | None]:
    """A finder of the one line with live nodes that `test` accepts."""
    return lambda program: only_line([node for node in program.nodes if test(program, node)])


def _names(node: ast.AST) -> set[str]:
    parts = ast.walk(node)
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in parts
        if isinstance(part, ast.Name | ast.Attribute)
    }


def _named(node: ast.AST, pattern: str) -> bool:
    return any(re.fullmatch(pattern, name, re.IGNORECASE) for name in _names(node))


def is_power_of_base(program: Program, node: ast.AST) -> bool:
    """`base ** x`, `10000 ** x`, `torch.pow(base, x)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        below = node.left
    elif isinstance(node, ast.Call) and callee(node) == "pow" and subject(node) is not None:
        below = subject(node) or node.func
    else:
        return False
    return _named(below, "base|theta") or number(below) == 10000


def is_made_of_turned(program: Program, node: ast.AST) -> bool:
    """`torch.stack` or `torch.cat` of a list in which both a cosine and a sine occur, or names with their values."""
    if not isinstance(node, ast.Call) or callee(node) not in ("stack", "cat", "concat", "concatenate") or not node.args:
        return False
    told = [node.args[0]]
    told += [program.resolved(part) for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)]
    joined = set().union(*map(_names, told))
    return all(any(word in name.lower() for name in joined) for word in ("cos", "sin"))


def is_bias_of_slopes(program: Program, node: ast.AST) -> bool:
    """A sum or difference with a product of slopes."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        return _is_bias(program, node.value)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return False
    return _is_bias(program, node.right) or _is_bias(program, node.left)


def _is_bias(program: Program, node: ast.expr) -> bool:
    value = program.resolved(node)
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and _named(value, r"\w*slopes?|m|alibi\w*")


def is_limit_of_window(program: Program, node: ast.AST) -> bool:
    """A comparison or a band with the width of the window, or a first key computed from it."""
    if isinstance(node, ast.Compare):
        checks = number(node.comparators[0]) is not None and isinstance(node.left, ast.Name)
        return not checks and _named(node, r"window(_size)?|w")
    if isinstance(node, ast.Call) and callee(node) in ("triu", "tril"):
        return any(_named(part, r"window(_size)?|w") for part in [*node.args, *node.keywords])
    return False


def is_join_of_sinks(program: Program, node: ast.AST) -> bool:
    """`|` or `&` with sinks in it, the outermost."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.BitOr | ast.BitAnd):
        return False
    around = program.parents.get(node)
    outer = not (isinstance(around, ast.BinOp) and isinstance(around.op, ast.BitOr | ast.BitAnd))
    return outer and _named(node, r"\w*sinks?\w*")
