"""The line of a mistake in the scale or in the softmax."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import (
    callee,
    is_method,
    is_module,
    keyword,
    line,
    mentions,
    number,
    on_self,
    only_line,
    other_arguments,
    role,
    subject,
)
from attn_kata.diagnosis.lines.values import is_mask, is_number, is_transposed, power, products


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """One place that divides or multiplies a tensor by a number; the factor is `base ** exponent`."""

    node: ast.AST
    made: ast.AST  # where the number was computed
    base: ast.expr
    exponent: float
    divides: bool
    floors: bool


def scalings(program: Program) -> list[Scaling]:
    """The live places that scale a tensor by a number made from a size."""
    found = []
    for node in program.nodes:
        for tensor, by, sign, floors in _factors(node):
            if is_number(program, tensor) or not is_number(program, by) or number(by) is not None:
                continue
            if is_mask(program, tensor) or mentions(by, "p", "dropout", "eps"):
                continue
            made = power(program, by, node)
            if number(made.base) is None:
                exponent = sign * made.exponent
                found.append(
                    Scaling(
                        node=node, made=made.made, base=made.base, exponent=exponent, divides=sign < 0, floors=floors
                    )
                )
    return found


def _factors(node: ast.AST) -> list[tuple[ast.expr, ast.expr, int, bool]]:
    """(tensor, number, +1 for times or -1 for divided, whether rounded down), for both orders of a product."""
    if isinstance(node, ast.BinOp | ast.AugAssign):
        left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        if isinstance(node.op, ast.Mult):
            return [(left, right, 1, False), (right, left, 1, False)]
        if isinstance(node.op, ast.Div | ast.FloorDiv):
            return [(left, right, -1, isinstance(node.op, ast.FloorDiv))]
    if isinstance(node, ast.Call):
        tensor, others = subject(node), other_arguments(node)
        name = callee(node).rstrip("_")
        if (
            tensor is not None
            and others
            and name in ("div", "divide", "true_divide", "mul", "multiply", "floor_divide")
        ):
            mode = keyword(node, "rounding_mode")
            rounded = name == "floor_divide" or (isinstance(mode, ast.Constant) and mode.value is not None)
            return [(tensor, others[0], 1 if name in ("mul", "multiply") else -1, rounded)]
        alpha = keyword(node, "alpha")
        if name in ("baddbmm", "addmm") and alpha is not None and tensor is not None:
            return [(tensor, alpha, 1, False)]
    return []


def wrong_size(program: Program, id: str) -> int | None:
    """The line that computes the number whose root divides the scores."""
    rooted = [one for one in scalings(program) if one.exponent == -0.5 and not one.floors]
    if len(rooted) != 1:
        return None
    return None if _is_right(program, id, rooted[0].base) else line(rooted[0].made)


_NUMBER_OF_HEADS = re.compile(r"(?i)(?:n|num|number_of)_?heads?|heads|nhead")


def by_heads(program: Program) -> list[ast.AST]:
    """Where the number whose root divides the scores is plainly the number of heads: `self.scale = heads ** -0.5`."""
    rooted = [one for one in scalings(program) if one.exponent == -0.5]
    plain = [one for one in rooted if isinstance(one.base, ast.Name | ast.Attribute)]
    return [one.made for one in plain if _NUMBER_OF_HEADS.fullmatch(ast.unparse(one.base).rpartition(".")[2])]


def by_width(program: Program) -> list[ast.AST]:
    """Where the root that divides the scores is plainly that of the width, of which the same class makes a size of heads.

    That is `scores / embed_dim ** 0.5` beside `embed_dim // num_heads`, or `scores / sqrt(num_heads * head_dim)`.
    """
    found: list[ast.AST] = []
    for one in scalings(program):
        owner, function = program.owner(one.node), program.function(one.node)
        if one.exponent != -0.5 or owner is None or getattr(function, "name", "") == "__init__":
            continue
        divided = {
            _last(node.left)
            for node in ast.walk(owner)
            if isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.FloorDiv | ast.Div | ast.Mod)
            and _is_of_heads(node.right)
        }
        base = one.base
        if isinstance(base, ast.BinOp) and isinstance(base.op, ast.Mult):
            of_all = _is_of_heads(base.left) != _is_of_heads(base.right)
            if of_all and any(re.search(r"(?i)head|d_k|^d$", _last(side)) for side in (base.left, base.right)):
                found.append(one.made)
        elif isinstance(base, ast.Name | ast.Attribute) and _last(base) in divided and not _is_computed(program, base):
            found.append(one.made)
    return found


_HEADS = re.compile(
    r"(?i)(?:n|nb|no|num|number_of|n_?q|q|query|attention)_?(?:attention_|attn_)?heads?|n?heads?|heads?_?(?:num|count)|n?h"
)


def _is_of_heads(node: ast.expr) -> bool:
    """Whether an expression has the name of a number of heads."""
    return _HEADS.fullmatch(_last(node)) is not None


def _last(node: ast.expr) -> str:
    """The last part of a name with dots: `heads` of `self.config.heads`; "" for anything else."""
    return ast.unparse(node).rpartition(".")[2] if isinstance(node, ast.Name | ast.Attribute) else ""


def _is_computed(program: Program, base: ast.Name | ast.Attribute) -> bool:
    """Whether a size gets its value by a computation, and may be the size of one head."""
    of_class = program.attribute(base) if isinstance(base, ast.Attribute) else []
    found = of_class or program.bindings(program.scope(base), _last(base))
    return any(isinstance(one.value, ast.BinOp | ast.IfExp | ast.Call) for one in found)


def _is_right(program: Program, id: str, base: ast.expr) -> bool:
    """Whether a size is clearly right: the last size of the queries, or the width divided by the number of heads."""
    if isinstance(base, ast.BinOp) and isinstance(base.op, ast.FloorDiv) and id != "scale.heads":
        return True
    read = None
    if isinstance(base, ast.Call) and callee(base) == "size" and base.args:
        read, index = subject(base), number(base.args[0])
    elif isinstance(base, ast.Subscript) and isinstance(base.value, ast.Attribute) and base.value.attr == "shape":
        read, index = base.value.value, number(base.slice)
    if read is None:
        return False
    return (
        id in ("scale.value_dim", "scale.key_length")
        and index == -1
        and isinstance(read, ast.Name)
        and role(read.id) in ("q", "k")
    )


def no_sqrt(program: Program) -> int | None:
    """The line where the scores are divided by the size itself."""
    whole = [one for one in scalings(program) if one.exponent == -1 and not one.floors]
    if len(whole) != 1:
        return None
    # For `scores / d_k` the mistake is the division, not `d_k = q.size(-1)`; for `scores * scale` it is `scale = 1 / d_k`.
    return line(whole[0].node) if whole[0].divides else line(whole[0].made)


def inverted(program: Program) -> int | None:
    """The line where scores are multiplied by the root, or divided by its inverse."""
    return only_line([one.node for one in scalings(program) if one.exponent > 0 and not one.floors])


def floor_division(program: Program) -> int | None:
    """The line of the rounding division."""
    return only_line([one.node for one in scalings(program) if one.floors])


def after_softmax(program: Program) -> int | None:
    """The line where weights, not scores, are divided."""
    found = [one.node for one in scalings(program) if one.exponent < 0]
    normal = [call for call in softmaxes(program) if callee(call) == "softmax"]
    if len(found) != 1 or len(normal) != 1:
        return None
    inside = normal[0] in ast.walk(found[0])
    return line(found[0]) if inside or line(found[0]) > line(normal[0]) else None


def unwanted(program: Program) -> int | None:
    """The line of the one division by a root."""
    return only_line([one.node for one in scalings(program) if one.exponent == -0.5])


def unscaled(program: Program) -> int | None:
    """The line of the one product of queries with transposed keys, where the division is missing."""
    every = [(node, _named(left)) for node, left, right in products(program) if is_transposed(program.resolved(right))]
    made = [node for node, named in every if named == "q"] or [node for node, _ in every]
    if not made:  # einsum("bqd,bkd->bqk", q, k)
        calls = [call for call in program.calls() if callee(call) == "einsum"]
        made = [call for call in calls if [_named(one) for one in call.args[1:3]] == ["q", "k"]]
    return line(made[0]) if len(made) == 1 else None


def summed(program: Program) -> int | None:
    """The line of the one sum of two tensors, of which additive attention takes tanh."""
    sums = [
        node
        for node in program.each(ast.BinOp)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and not any(is_number(program, side) or is_mask(program, side) for side in (node.left, node.right))
    ]
    return line(sums[0]) if len(sums) == 1 else None


def _named(node: ast.expr) -> str:
    """The role that the name of a tensor, or of what a chain of methods begins with, tells; "" for none."""
    while isinstance(node, ast.Call) and is_method(node):
        node = subject(node) or node.func
    return role(node.id) if isinstance(node, ast.Name) else ""


# --------------------------------------------------------------------------------------------------------- softmax


def softmaxes(program: Program) -> list[ast.Call]:
    """The live calls of torch's softmax, and where `nn.Softmax` is made."""
    found = []
    for call in program.calls():
        name = callee(call)
        by_torch = is_method(call) or (isinstance(call.func, ast.Attribute) and is_module(call.func.value))
        imported = (
            isinstance(call.func, ast.Name) and not program.bindings(program.tree, name) and not _defined(program, name)
        )
        if (name in ("softmax", "log_softmax", "_softmax") and (by_torch or imported)) or name in (
            "Softmax",
            "LogSoftmax",
        ):
            found.append(call)
    return found


def exponentials(program: Program) -> list[ast.Call]:
    """The live calls of exp and exp2."""
    return [call for call in program.calls() if callee(call) in ("exp", "exp2", "exp_")]


def _defined(program: Program, name: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in program.nodes)


def dimension(call: ast.Call) -> ast.expr | None:
    """The dimension that a softmax is given."""
    given = keyword(call, "dim", "axis")
    if given is not None:
        return given
    others = call.args if callee(call) in ("Softmax", "LogSoftmax") else other_arguments(call)
    return others[0] if others else None


def without_dim(program: Program) -> list[ast.Call]:
    """All live softmaxes, if none of them is given a dimension."""
    calls = softmaxes(program)
    return [] if any(dimension(call) is not None for call in calls) else calls


def made_of_scores(program: Program) -> list[ast.AST]:
    """Where nn.Softmax is given the scores beside a dimension, as if it were the function: it takes a dimension alone."""
    return [
        call
        for call in program.calls()
        if callee(call) == "Softmax"
        and isinstance(call.func, ast.Attribute)
        and ast.unparse(call.func.value) in ("nn", "torch.nn")
        and call.args
        and (keyword(call, "dim") is not None or len(call.args) > 1)
    ]


def along_fourth(program: Program) -> list[ast.Call]:
    """The live softmaxes along dimension 3, counted from the first."""
    return [call for call in softmaxes(program) if number(dimension(call)) == 3]


def wrong_dim(program: Program) -> int | None:
    """The line of the one softmax, or of the one sum by hand, whose dimension is not clearly the last."""
    calls = softmaxes(program)
    if calls:
        nodes = [where for call in calls if (where := _not_last(program, call)) is not None]
        return only_line(nodes) if len(nodes) == 1 else None
    return _by_hand(program, lambda call: _not_last(program, call))


def _not_last(program: Program, call: ast.Call) -> ast.AST | None:
    """The node with a dimension that is not the last: the call, or the argument that a helper's only call passes."""
    dim = dimension(call)
    if dim is None:
        return call
    given = program.resolved(dim)
    if number(given) in (-1, 3):
        return None
    binding = program.binding(dim)
    if binding is None or not isinstance(binding.node, ast.arg):
        return call
    return None if given is dim else given  # a helper that is called twice, or with its default


def _by_hand(program: Program, suspect: Callable[[ast.Call], ast.AST | None]) -> int | None:
    """The line that `suspect` returns for the one sum under a division."""
    sums = []
    for node in program.nodes:
        below = _denominator(node)
        while isinstance(below, ast.BinOp):  # sum + eps
            below = below.left
        resolved = program.resolved(below) if below is not None else None
        if isinstance(resolved, ast.Call) and callee(resolved) == "sum":
            where = suspect(resolved)
            if where is not None:
                sums.append(where)
    return only_line(sums) if len(sums) == 1 else None


def _denominator(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return node.right
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
        return node.value
    if (
        isinstance(node, ast.Call)
        and callee(node) in ("div", "div_", "divide", "true_divide")
        and other_arguments(node)
    ):
        return other_arguments(node)[0]
    return None


def flattened(program: Program) -> int | None:
    """The line of the one softmax over everything."""
    calls = softmaxes(program)
    if calls:
        return only_line(list(calls)) if len(calls) == 1 else None
    return _by_hand(
        program, lambda call: call if isinstance(dimension(call), ast.Tuple | ast.List | type(None)) else None
    )


def sigmoid(program: Program) -> int | None:
    """The line of the one sigmoid."""
    return only_line(
        [
            call
            for call in program.calls()
            if callee(call) in ("sigmoid", "Sigmoid", "sigmoid_") and not on_self(call.func)
        ]
    )


def twice(program: Program) -> int | None:
    """The line of the second softmax of two in one function."""
    calls = [call for call in softmaxes(program) if callee(call) == "softmax"]
    if len(calls) != 2 or program.function(calls[0]) is not program.function(calls[1]):
        return None
    outer = next((one for one in calls for other in calls if one is not other and other in ast.walk(one)), None)
    return line(outer) if outer is not None else line(calls[1])


def log(program: Program) -> int | None:
    """The line of the logarithm."""
    return only_line([call for call in program.calls() if callee(call) in ("log", "log_softmax", "logsumexp", "log_")])


_REDUCTIONS = ("max", "amax", "sum", "logsumexp", "min", "amin")


def reductions(program: Program) -> list[ast.Call]:
    """The live reductions of tensors."""
    return [call for call in program.calls() if callee(call) in _REDUCTIONS and isinstance(call.func, ast.Attribute)]


def dim_ignored(program: Program) -> int | None:
    """The first reduction along a fixed dimension, if all of them are in one function."""
    fixed = [call for call in reductions(program) if number(dimension(call)) is not None]
    return line(fixed[0]) if fixed and len({program.scope(call) for call in fixed}) == 1 else None


def negated(program: Program) -> int | None:
    """The line of maximum minus scores, or of exp of the negated scores."""
    found: list[ast.AST] = []
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            above = program.resolved(node.left)
            if any(isinstance(part, ast.Call) and callee(part) in ("max", "amax") for part in ast.walk(above)):
                found.append(node)
        elif isinstance(node, ast.Call) and callee(node) in ("exp", "softmax"):
            tensor = subject(node)
            if isinstance(tensor, ast.UnaryOp) and isinstance(tensor.op, ast.USub):
                found.append(node)
    return only_line(found)


def whole_tensor(program: Program) -> int | None:
    """The line of the one sum without a dimension."""
    return only_line([call for call in reductions(program) if callee(call) == "sum" and dimension(call) is None])


def keepdim(program: Program) -> int | None:
    """The line of the one reduction with a dimension and without keepdim."""
    return only_line(
        [
            call
            for call in reductions(program)
            if dimension(call) is not None
            and keyword(call, "keepdim", "keepdims") is None
            and len(other_arguments(call)) < 2
        ]
    )


def global_max(program: Program) -> int | None:
    """The line of the one maximum without a dimension."""
    return only_line(
        [call for call in reductions(program) if callee(call) in ("max", "amax") and dimension(call) is None]
    )


def no_max(program: Program) -> int | None:
    """The line of the one exp."""
    return only_line([call for call in program.calls() if callee(call) in ("exp", "exp_")])


def clamped(program: Program) -> int | None:
    """The line of the one clamp."""
    return only_line(
        [call for call in program.calls() if callee(call) in ("clamp", "clamp_", "clip", "minimum", "clamp_max")]
    )
