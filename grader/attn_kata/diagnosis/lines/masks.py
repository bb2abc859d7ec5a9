"""The line of a mistake with masks."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from attn_kata.diagnosis.lines.program import Binding, Program
from attn_kata.diagnosis.lines.scores import softmaxes
from attn_kata.diagnosis.lines.syntax import (
    callee,
    line,
    number,
    only_line,
    other_arguments,
    position,
    subject,
)
from attn_kata.diagnosis.lines.triangles import comparisons, triangle
from attn_kata.diagnosis.lines.uses import Use, fill_number, sense, use_at, uses
from attn_kata.diagnosis.lines.values import is_mask, is_range


def lost(program: Program) -> int | None:
    """The line of the unused masked tensor or mask."""
    found: list[ast.AST] = []
    for node in program.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            copy = subject(call) if callee(call) in ("masked_fill_", "fill_") else None
            on_copy = isinstance(copy, ast.Call | ast.Subscript) and (
                callee(copy) == "clone" if isinstance(copy, ast.Call) else is_mask(program, copy.slice)
            )
            if callee(call) in ("masked_fill", "where") or on_copy:
                found.append(call)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            target = node.targets[0]
            if _masks(program, node.value) and unused(program, node, target.id):
                found.append(node)
    return line(found[0]) if len(found) == 1 else None


def _masks(program: Program, node: ast.expr) -> bool:
    return is_mask(program, node) or any(use_at(program, part) is not None for part in ast.walk(node))


def unused(program: Program, made: ast.Assign, name: str) -> bool:
    """Whether the value that a statement assigns to a name is never read."""
    scope = program.scope(made)
    if program.in_loop(made) or isinstance(scope, ast.Module):
        return False
    end = (made.end_lineno or made.lineno, made.end_col_offset or 0)
    loads = [position(load) for load in program.loads(scope, name) if position(load) >= end]
    around = program.blocks(made)
    for again in program.bindings(scope, name):
        statement = again.node
        if (
            isinstance(statement, ast.Assign)
            and position(statement) > position(made)
            and _always(program, again, around)
        ):
            stop = (statement.end_lineno or 0, statement.end_col_offset or 0)
            return not [load for load in loads if load < stop]
    return not loads


def goes_nowhere(program: Program, statement: ast.AST) -> bool:
    """Whether a statement drops its value, or assigns it to a name that is never read afterwards."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        return unused(program, statement, statement.targets[0].id)
    return isinstance(statement, ast.Expr)


def _always(program: Program, again: Binding, around: list[tuple[ast.AST, str]]) -> bool:
    blocks = program.blocks(again.node)
    return bool(blocks) and blocks[0] in around


def _applications(program: Program) -> list[Use]:
    """The places that apply a mask, without sums of an already filled mask."""
    return [use for use in uses(program) if not (use.kind == "plus" and number(use.mask) is not None)]


def second_applications(program: Program) -> list[ast.AST]:
    """Where a mask is applied, but for the first place: to weights, where the first is the scores."""
    return [use.node for use in _applications(program)[1:]]


def inverted(program: Program) -> int | None:
    """The line of the one use of a mask that may be inverted; else the line that makes the one mask.

    A function causal_mask that returns the future is the mistake, also where the attempt uses its mask consistently.
    """
    future = [call for call in program.calls() if callee(call) == "triu" and _is_causal_mask(program, call)]
    if future:
        return only_line(future)
    doubtful = [use.node for use in _applications(program) if sense(program, use) is not True]
    plainly = [use.node for use in _applications(program) if sense(program, use) is False]
    if doubtful:
        return only_line(plainly or doubtful)
    beyond = [node for node in comparisons(program) if _keeps_beyond(program, node)]
    return only_line(beyond) if beyond else triangle(program)


def _is_causal_mask(program: Program, made: ast.Call) -> bool:
    """Whether a call makes what a function called causal… returns, as it is."""
    function = program.function(made)
    return (
        function is not None
        and getattr(function, "name", "").startswith("causal")
        and isinstance(program.parents.get(made), ast.Return)
    )


def _keeps_beyond(program: Program, node: ast.Compare) -> bool:
    """Whether a comparison of positions with lengths is true beyond the length."""
    left, right = is_range(program, node.left), is_range(program, node.comparators[0])
    beyond = (ast.Gt, ast.GtE) if left else (ast.Lt, ast.LtE)
    return left != right and isinstance(node.ops[0], beyond)


def zero_fill(program: Program) -> int | None:
    """The line where scores are filled with about 0, or multiplied by the mask."""
    return only_line(
        [
            use.node
            for use in uses(program)
            if fill_number(program, use) == 0 or _fills_tiny(program, use) or (use.kind == "times" and use.fill is None)
        ]
    )


def tiny(program: Program) -> int | None:
    """The line of the one product of a mask with a tiny number, or of the one bias that is tiny where the mask is."""
    return only_line(tiny_terms(program))


def tiny_terms(program: Program) -> list[ast.AST]:
    """The live products of a mask with a number that is not 0 and smaller than 1e-3, as in `mask * -1e-9`.

    `(1 - x) * -1e-9` is one whatever x is called: nothing else is turned round to be made that small. A fill with such a
    number is one too, unless its result is dropped: who says that it is added to the scores knows it from their values.
    """
    found: list[ast.AST] = [
        use.node for use in uses(program) if _fills_tiny(program, use) and not _dropped(program, use.node)
    ]
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and node not in found:
            for one, other in ((node.left, node.right), (node.right, node.left)):
                turned = isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub) and number(other.left) == 1
                if turned and _tiny(number(one)):
                    found.append(node)
    return found


def tiny_scores(program: Program) -> list[ast.AST]:
    """Those of them that no softmax comes before in their function: what is filled are scores, and no weights."""

    def is_of_weights(node: ast.AST) -> bool:
        around = program.scope(node)
        return any(
            "softmax" in callee(call).lower() and program.scope(call) is around and position(call) < position(node)
            for call in program.calls()
        )

    return [node for node in tiny_terms(program) if not is_of_weights(node)]


def _fills_tiny(program: Program, use: Use) -> bool:
    """Whether a number that a mask chooses or is multiplied by is tiny: 1e-9, or an epsilon."""
    chosen = [use.fill] if use.fill is not None else []
    if use.kind == "where" and isinstance(use.node, ast.Call):
        chosen = other_arguments(use.node)  # a bias has a number on both sides
    return any(_tiny(fill_number(program, replace(use, fill=one))) or _epsilon(program.resolved(one)) for one in chosen)


def _epsilon(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and "eps" in ast.unparse(node)


def _dropped(program: Program, node: ast.AST) -> bool:
    statement = program.parents.get(node)
    if not isinstance(statement, ast.Expr | ast.Assign) or not goes_nowhere(program, statement):
        return False
    in_place = isinstance(node, ast.Call) and callee(node).endswith("_")
    return not in_place or not _goes_into_softmax(program, node)  # type: ignore[arg-type]


def _goes_into_softmax(program: Program, call: ast.Call) -> bool:
    """Whether a softmax below takes what a call has changed in place, by its name: then it was scores, and no norms."""
    tensor = subject(call)
    if not isinstance(tensor, ast.Name):
        return False
    for other in program.calls():
        if "softmax" in callee(other).lower() and program.scope(other) is program.scope(call):
            taken = [*other.args[:1], *([other.func.value] if isinstance(other.func, ast.Attribute) else [])]
            named = any(isinstance(one, ast.Name) and one.id == tensor.id for one in taken)
            if named and position(other) > position(call):
                return True
    return False


def _tiny(by: float | None) -> bool:
    return by is not None and 0 < abs(by) <= 1e-3


def weak_numbers(program: Program) -> list[float]:
    """The numbers, apart from about 0, that are put where a mask is and do not hide a key."""
    told = (_given(program, use) for use in uses(program))
    return sorted({fill for fill in told if fill is not None and (fill > 1e-3 or -WEAK < fill < -1e-3)})


WEAK = 1e3  # a key whose score is lower by this has no weight


def weak_fill(program: Program) -> int | None:
    """The line of the one fill with a number that is not far below the scores."""
    return only_line([use.node for use in uses(program) if 1e-3 < abs(_given(program, use) or 0.0) <= WEAK])


def fill_sign(program: Program) -> int | None:
    """The line of the one fill with a large positive number."""
    return only_line(positive_fills(program))


def positive_fills(program: Program) -> list[ast.AST]:
    """The live fills of hidden keys with a large positive number."""
    return [use.node for use in _with_plus(program) if sense(program, use) is True]


def raised(program: Program) -> int | None:
    """The line of the one large positive number for kept keys."""
    return only_line(raised_scores(program))


def raised_scores(program: Program) -> list[ast.AST]:
    """The live places that give kept keys a large positive number."""
    return [use.node for use in _with_plus(program) if use.kind == "times" and sense(program, use) is False]


def _with_plus(program: Program) -> list[Use]:
    return [use for use in uses(program) if (_given(program, use) or 0.0) > WEAK]


def _given(program: Program, use: Use) -> float | None:
    """The number that masked scores get or that is added to them, with the sign of a difference."""
    fill, above = fill_number(program, use), program.parents.get(use.node)
    less = isinstance(above, ast.BinOp | ast.AugAssign) and isinstance(above.op, ast.Sub)
    taken = above.right if isinstance(above, ast.BinOp) else getattr(above, "value", None)
    return -fill if fill is not None and less and taken is use.node else fill


def integer_not(program: Program) -> int | None:
    """The line of the one ~ of integers."""
    return only_line(inverted_integers(program))


def inverted_integers(program: Program) -> list[ast.AST]:
    """The live ~ of a mask that was made a tensor of integers, without a mask of its bits."""
    found: list[ast.AST] = []
    for node in program.nodes:
        inverts = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
        if not inverts or not is_mask(program, node.operand):  # type: ignore[attr-defined]
            continue
        around = program.parents.get(node)
        if _is_integer(program.resolved(node.operand)) and not (  # type: ignore[attr-defined]
            isinstance(around, ast.BinOp) and isinstance(around.op, ast.BitAnd)
        ):
            found.append(node)
    return found


def _is_integer(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if callee(node) in ("byte", "int", "long", "short", "char"):
        return True
    return callee(node) in ("to", "type") and any(
        re.fullmatch(r"u?int\d*|long|short", getattr(part, "attr", ""))
        for given in node.args
        for part in ast.walk(given)
    )


def zero_times_inf(program: Program) -> int | None:
    """The line of the one product of a mask with infinity."""
    return only_line(times_infinity(program))


def times_infinity(program: Program) -> list[ast.AST]:
    """The live products of a mask with infinity. A tensor of -inf cut by triu does not count."""
    found: list[ast.AST] = []
    for node in program.nodes:
        pair: list[ast.expr | None] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            pair = [node.left, node.right]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
            pair = [node.target, node.value]
        elif isinstance(node, ast.Call) and callee(node) in ("mul", "mul_", "multiply") and other_arguments(node):
            pair = [subject(node), other_arguments(node)[0]]
        for mask, factor in (pair, pair[::-1]) if pair else ():
            if factor is not None and is_mask(program, mask) and _infinite(program, factor):
                found.append(node)
                break
    return found


def _infinite(program: Program, node: ast.expr) -> bool:
    value = number(program.resolved(node))
    return value is not None and abs(value) == float("inf")


def after_softmax(program: Program) -> int | None:
    """The line of the one use of a mask after the softmax."""
    calls = softmaxes(program)
    if len(calls) > 1 or not uses(program):
        return None
    found = [
        use.node
        for use in uses(program)
        if not calls or line(use.node) >= line(calls[0]) or calls[0] in ast.walk(use.node)
    ]
    before = {line(use.node) for use in uses(program)} - {line(node) for node in found}
    return None if before else only_line(found)


def only_application(program: Program) -> int | None:
    """The line of the one use of a mask, if what comes of it is used."""
    found = [use.node for use in _applications(program)]
    statements = [program.statement(node) for node in found]
    thrown_away = any(isinstance(one, ast.Assign) and goes_nowhere(program, one) for one in statements)
    return None if thrown_away else only_line(found)


def added(program: Program) -> int | None:
    """The line where a mask is added."""
    return only_line([use.node for use in uses(program) if use.kind == "plus"])


def large_fill(program: Program) -> int | None:
    """The line of the one fill value outside float16's range."""
    fills = [(use.node, fill_number(program, use)) for use in uses(program)]
    return only_line([node for node, fill in fills if fill is not None and 65504 < abs(fill) < float("inf")])


def small_fill(program: Program) -> int | None:
    """The line of the one fill value that large scores are not far above."""
    return only_line([use.node for use in uses(program) if 1e-3 < -(_given(program, use) or 0.0) <= SMALL])


SMALL = 1e5  # scores of 1e4 are asked for


def either(program: Program) -> int | None:
    """The line of the one `or` of masks."""
    return only_line([node for node in program.nodes if _or(program, node)])


def _or(program: Program, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return callee(node) in ("logical_or", "bitwise_or", "maximum", "logical_or_")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.Add):
        return is_mask(program, node.left) and is_mask(program, node.right)
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr)
