"""Flags of keys that are laid on the queries."""

from __future__ import annotations

import ast

from attn_kata.diagnosis.lines.masks import goes_nowhere, only_application
from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.scores import dimension, softmaxes
from attn_kata.diagnosis.lines.syntax import callee, line, number, only_line, other_arguments, subject
from attn_kata.diagnosis.lines.values import is_mask


def query_axis(program: Program) -> int | None:
    """The line that gives the key flags a last dimension of 1, or the one use of the mask."""
    found = _upright(program)
    return only_line(found) if found else only_application(program)


def masked_queries(program: Program) -> list[ast.AST]:
    """The flags with a last dimension of 1 that are used before a softmax in the same function: on scores.

    Behind the softmax they are on features, as in a mean over the tokens that are kept.
    """
    calls = softmaxes(program)
    return [
        node
        for node in _upright(program)
        if any(program.scope(call) is program.scope(node) and line(node) < line(call) for call in calls)
        and not goes_nowhere(program, program.statement(node))
    ]


def _upright(program: Program) -> list[ast.AST]:
    found: list[ast.AST] = []
    for node in program.nodes:
        if isinstance(node, ast.Subscript) and is_mask(program, node.value) and isinstance(node.slice, ast.Tuple):
            if _ends_upright(node.slice.elts):
                found.append(node)
        elif (
            isinstance(node, ast.Call)
            and callee(node) in ("unsqueeze", "unsqueeze_")
            and is_mask(program, subject(node))
        ):
            outer = program.parents.get(node)
            inside = isinstance(outer, ast.Attribute) and outer.attr.startswith("unsqueeze")
            dim = number(other_arguments(node)[0]) if other_arguments(node) else None
            if dim in (-1, 3) and not inside:
                found.append(node)
    return found


def _ends_upright(index: list[ast.expr]) -> bool:
    """Whether an index of flags (B, Tk) ends with a new dimension: `[:, None]` has one, and the keys follow it."""
    given = [part.value if isinstance(part, ast.Constant) else part for part in index]
    return given[-1] is None and (Ellipsis in given or sum(part is not None for part in given) > 1)


def softmax_over_queries(program: Program) -> list[ast.AST]:
    """The live softmaxes along dimension -2, or 1: that of the queries in scores of three dimensions."""
    return [call for call in softmaxes(program) if number(dimension(call)) in (-2, 1)]
