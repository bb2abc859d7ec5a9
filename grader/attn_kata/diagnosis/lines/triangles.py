"""The line of a mistake with causal masks and masks of lengths: the triangle, the comparison, and where a mask is kept."""

from __future__ import annotations

import ast

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, keyword, number, on_self, only_line, other_arguments, subject
from attn_kata.diagnosis.lines.values import is_mask, is_range


def comparisons(program: Program) -> list[ast.Compare]:
    """The live comparisons with positions (such as an arange)."""
    return [
        node
        for node in program.nodes
        if isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        and (is_range(program, node.left) or is_range(program, node.comparators[0]))
    ]


def triangle(program: Program) -> int | None:
    """The line of the one triangle: tril, triu, or a comparison of positions with positions."""
    return only_line(_triangles(program))


def top_left(program: Program) -> int | None:
    """The line of the one triangle that ignores the difference of the lengths."""
    return only_line([node for node in _triangles(program) if not _aligned(program, node)])


def _triangles(program: Program) -> list[ast.AST]:
    names = ("tril", "triu", "tril_indices", "triu_indices")
    made = [call for call in program.calls() if callee(call).rstrip("_") in names]
    return [*made, *(node for node in comparisons(program) if _both_count(program, node))]


LONG = 16  # a literal size from here on is a bound, and no number of dimensions


def fixed_size(program: Program) -> int | None:
    """The line of the one triangle that is made of a literal size."""
    return only_line(
        [node for node in _triangles(program) if isinstance(node, ast.Call) and _literal_size(program, node)]
    )


def _literal_size(program: Program, made: ast.Call) -> bool:
    for part in ast.walk(program.resolved(subject(made) or made)):
        if isinstance(part, ast.Call) and callee(part) in ("ones", "full", "zeros", "empty"):
            told = [number(program.resolved(one)) for one in ast.walk(part) if isinstance(one, ast.expr)]
            if any(size is not None and LONG <= size < float("inf") for size in told):
                return True
    return False


def kept(program: Program) -> int | None:
    """The line that keeps a mask of one call for later ones, where nothing but its absence is looked at."""
    found: list[ast.AST] = []
    for node in program.nodes:
        if (
            not isinstance(node, ast.If)
            or not _asks_for_absence(node.test)
            or isinstance(program.scope(node), ast.Module)
        ):
            continue
        for part in node.body:
            call = part.value if isinstance(part, ast.Expr) else None
            if isinstance(part, ast.Assign) and not isinstance(part.targets[0], ast.Subscript):
                target, value = part.targets[0], part.value
                lasts = on_self(target) or (isinstance(target, ast.Name) and _is_global(program, part, target.id))
                if lasts and _makes_mask(program, value):
                    found.append(part)
            elif (
                isinstance(call, ast.Call)
                and callee(call) == "append"
                and call.args
                and _makes_mask(program, call.args[0])
            ):
                found.append(part)
    return only_line(found)


def _makes_mask(program: Program, value: ast.expr) -> bool:
    while isinstance(value, ast.Call) and "mask" not in callee(value) and isinstance(value.func, ast.Attribute):
        if is_mask(program, value):
            return True
        value = value.func.value  # make_mask(T).unsqueeze(0).to(x.device)
    return is_mask(program, value) or (isinstance(value, ast.Call) and "mask" in callee(value))


def _asks_for_absence(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(_asks_for_absence(part) for part in test.values)
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Is) and isinstance(test.comparators[0], ast.Constant)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = test.operand
        return isinstance(inner, ast.Name | ast.Attribute) or (
            isinstance(inner, ast.Call) and callee(inner) == "hasattr"
        )
    return False


def _is_global(program: Program, node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Global) and name in one.names for one in ast.walk(program.scope(node)))


def _both_count(program: Program, node: ast.Compare) -> bool:
    return is_range(program, node.left) and is_range(program, node.comparators[0])


def _aligned(program: Program, node: ast.AST) -> bool:
    """Whether a diagonal is a difference of sizes, or positions are shifted by one."""
    if isinstance(node, ast.Call):
        diagonal = keyword(node, "diagonal", "offset") or (other_arguments(node)[0] if other_arguments(node) else None)
        return diagonal is not None and number(diagonal) is None
    assert isinstance(node, ast.Compare)
    for side in (node.left, node.comparators[0]):
        made = program.resolved(side)
        if any(isinstance(part, ast.BinOp) and number(part.right) is None for part in ast.walk(made)):
            return True
        ranges = [part for part in ast.walk(made) if isinstance(part, ast.Call) and callee(part) == "arange"]
        if any(len(part.args) > 1 for part in ranges):
            return True
    return False


def lengths(program: Program) -> int | None:
    """The line of the one comparison of positions with lengths."""
    return only_line([node for node in comparisons(program) if not _both_count(program, node)])
