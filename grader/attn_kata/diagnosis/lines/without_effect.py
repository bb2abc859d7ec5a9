"""Statements that change nothing: a call makes a new tensor, and nothing takes it."""

from __future__ import annotations

import ast

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, is_method, is_module, keyword, line

# Functions of tensors that leave the tensor as it was.
_MAKE_NEW = frozenset(
    (
        *("permute", "transpose", "view", "reshape", "flatten", "unsqueeze", "squeeze"),
        *("expand", "repeat", "repeat_interleave", "masked_fill", "softmax"),
    )
)


def dropped(program: Program) -> list[ast.AST]:
    """The live statements of functions that make a new tensor and drop it, as `x.transpose(1, 2)` alone."""
    return [
        node
        for node in program.each(ast.Expr)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and callee(node.value) in _MAKE_NEW
        and isinstance(node.value.func, ast.Attribute)
        and (is_method(node.value) or is_module(node.value.func.value))
        and keyword(node.value, "out") is None
        and program.function(node) is not None
    ]


def first(program: Program) -> int | None:
    """The line of the first of them."""
    return next((line(node) for node in dropped(program)), None)
