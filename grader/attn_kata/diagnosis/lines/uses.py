"""The places that apply masks to scores or weights, and whether True means keep or ignore there."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, is_method, keyword, number, other_arguments, subject
from attn_kata.diagnosis.lines.values import is_mask, is_parameter


@dataclass(frozen=True, kw_only=True)
class Use:
    """One place that applies a mask to scores or weights."""

    node: ast.AST
    kind: str  # "fill", "where", "times", "plus"
    mask: ast.expr
    fill: ast.expr | None  # the value for masked places
    filled_where_true: bool | None  # None if the source does not show it


def uses(program: Program) -> list[Use]:
    """The live places where masks are applied."""
    found = []
    for node in program.nodes:
        use = use_at(program, node)
        if use is not None:
            found.append(use)
    return found


def use_at(program: Program, node: ast.AST) -> Use | None:
    if isinstance(node, ast.Call):
        name, others = callee(node), other_arguments(node)
        if name in ("masked_fill", "masked_fill_", "masked_softmax"):
            mask = keyword(node, "mask") or (others[0] if others else None)
            fill = keyword(node, "value") or (others[1] if len(others) > 1 else None)
            return (
                Use(node=node, kind="fill", mask=mask, fill=fill, filled_where_true=True) if mask is not None else None
            )
        if name == "where":
            return _where(program, node)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        index = node.targets[0].slice
        if is_mask(program, index):
            return Use(node=node, kind="fill", mask=index, fill=node.value, filled_where_true=True)
    if isinstance(node, ast.BinOp | ast.AugAssign):
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        kind = {ast.Mult: "times", ast.Add: "plus"}.get(type(node.op))
        mask = next((side for side in sides if is_mask(program, side)), None)
        if kind and mask is not None and not all(is_mask(program, side) for side in sides):
            other = sides[1] if mask is sides[0] else sides[0]
            by_number = number(other) is not None  # (1 - mask) * -1e9 makes a term that is added later
            return (
                Use(
                    node=node,
                    kind="times",
                    mask=mask,
                    fill=other if by_number else None,
                    filled_where_true=by_number or None,
                )
                if kind == "times"
                else Use(node=node, kind=kind, mask=mask, fill=None, filled_where_true=None)
            )
    return None


def _where(program: Program, node: ast.Call) -> Use | None:
    """torch.where(mask, scores, fill) and scores.where(mask, fill)."""
    if is_method(node):
        if len(node.args) < 2 or not is_mask(program, node.args[0]):
            return None
        return Use(node=node, kind="where", mask=node.args[0], fill=node.args[1], filled_where_true=False)
    if len(node.args) < 3 or not is_mask(program, node.args[0]):
        return None
    mask, first, second = node.args[:3]
    if _is_fill(program, first) == _is_fill(program, second):
        return Use(node=node, kind="where", mask=mask, fill=None, filled_where_true=None)
    fills = _is_fill(program, first)
    return Use(node=node, kind="where", mask=mask, fill=first if fills else second, filled_where_true=fills)


def _is_fill(program: Program, node: ast.expr) -> bool:
    node = program.resolved(node)
    if number(node) is not None:
        return True
    if isinstance(node, ast.Call):
        if callee(node) in ("zeros_like", "full_like", "zeros", "full"):
            return True
        return callee(node) in ("tensor", "float", "to", "type_as") and _is_fill(program, subject(node) or node.func)
    if isinstance(node, ast.UnaryOp):
        return _is_fill(program, node.operand)
    return isinstance(node, ast.Attribute) and node.attr in ("inf", "min", "max", "NINF")


def fill_number(program: Program, use: Use) -> float | None:
    if use.fill is None:
        return None
    fill = program.resolved(use.fill)
    if isinstance(fill, ast.Call) and callee(fill) in ("zeros_like", "zeros"):
        return 0.0
    if isinstance(fill, ast.Call) and callee(fill) in ("tensor", "full_like", "to", "type_as"):
        inner = other_arguments(fill)[0] if callee(fill) == "full_like" and other_arguments(fill) else subject(fill)
        return number(inner)
    return number(fill)


def sense(program: Program, use: Use) -> bool | None:
    """True if the parameter's True clearly means "may attend", False if it clearly means "ignore", else None."""
    if use.filled_where_true is None:
        return None
    negated, mask = _negations(program, use.mask)
    if mask is None:
        return None
    return negated if use.filled_where_true else not negated


def _negations(program: Program, mask: ast.expr) -> tuple[bool, ast.expr | None]:
    """Whether a mask is the negation of a parameter, and that parameter; (…, None) if this is not certain."""
    negated = False
    for _ in range(12):
        if isinstance(mask, ast.UnaryOp):
            negated, mask = not negated, mask.operand
        elif isinstance(mask, ast.Compare) and isinstance(mask.ops[0], ast.Eq | ast.NotEq):
            against = mask.comparators[0]
            zero = number(against) == 0 or (isinstance(against, ast.Constant) and against.value is False)
            negated ^= zero == isinstance(mask.ops[0], ast.Eq)
            mask = mask.left
        elif isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.Sub) and number(mask.left) == 1:
            negated, mask = not negated, mask.right
        elif isinstance(mask, ast.Subscript):
            mask = mask.value
        elif isinstance(mask, ast.Call):
            name, inner = callee(mask), subject(mask)
            if name in ("tril", "triu"):  # ones below the diagonal are the past, ones above it the future
                return negated ^ (name == "triu"), mask
            if isinstance(mask.func, ast.Name):  # a helper's mask, True = may attend
                return negated, mask
            if inner is None or name in ("logical_and", "logical_or"):
                return negated, None
            others = other_arguments(mask)
            if name in ("logical_not", "bitwise_not") or (name == "eq" and others and number(others[0]) == 0):
                negated = not negated
            mask = inner
        elif is_parameter(program, mask):
            return negated, mask
        else:
            value = program.value(mask)
            if value is None:
                return negated, None
            mask = value
    return negated, None
