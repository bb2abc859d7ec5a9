"""What changes nothing: a call makes a new tensor and nothing takes it, or a module is called and returns nothing."""

from __future__ import annotations

import ast
import re

from attn_kata.diagnosis.lines.masks import goes_nowhere
from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, is_method, is_module, keyword, on_self

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


def dropped_masks(program: Program) -> list[ast.AST]:
    """Those of them that were to hide keys: `scores.masked_fill(hidden, -inf)` alone."""
    return [
        node
        for node in dropped(program)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and callee(node.value) == "masked_fill"
    ]


def layers_for_nothing(program: Program) -> list[ast.AST]:
    """Where a layer of the class computes something under a name that its function never reads: `q_ = self.to_q(q)`."""
    found: list[ast.AST] = []
    for node in program.each(ast.Assign):
        assert isinstance(node, ast.Assign)
        target, call, around = node.targets[0], node.value, program.function(node)
        if (
            len(node.targets) > 1
            or not isinstance(target, ast.Name)
            or not isinstance(call, ast.Call)
            or around is None
        ):
            continue
        named = [one for one in ast.walk(around) if isinstance(one, ast.Name) and one.id == target.id]
        is_read = any(isinstance(one.ctx, ast.Load) for one in named)
        made = program.value(call.func) if on_self(call.func) else None
        if isinstance(made, ast.Call) and callee(made) in ("Linear", "Conv1d", "Conv1D", "Bilinear") and not is_read:
            found.append(node)
    return found


def softmaxes_for_nothing(program: Program) -> list[ast.AST]:
    """Where the only softmax of a class is under a name that is set anew before anything reads it, or never read."""
    found: list[ast.AST] = []
    every = [call for call in program.calls() if _is_softmax(program, call)]
    for call in every:
        node, owner = program.parents.get(call), program.owner(call)
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        alone = owner is not None and [program.owner(one) for one in every].count(owner) == 1
        around = program.function(call)
        if (
            not alone
            or around is None
            or node is None
            or not isinstance(target, ast.Name)
            or keyword(call, "out") is not None
        ):
            continue
        if not _may_be_taken_elsewhere(owner, around) and goes_nowhere(program, node):
            found.append(node)
    return found


def _may_be_taken_elsewhere(owner: ast.ClassDef | None, around: ast.AST) -> bool:
    """Whether a softmax is computed in another way too, or a name may be read by another function."""
    shared = (ast.Global, ast.Nonlocal, ast.Lambda, ast.FunctionDef)
    inside = any(isinstance(one, shared) for one in ast.walk(around) if one is not around)
    named = {one.attr for one in ast.walk(owner) if isinstance(one, ast.Attribute)} if owner is not None else set()
    return inside or bool(named & {"exp", "exp_", "scaled_dot_product_attention", "log_softmax"})


def _is_softmax(program: Program, call: ast.Call) -> bool:
    if callee(call) == "softmax" and not on_self(call.func):
        return True
    made = program.value(call.func) if on_self(call.func) else None
    return isinstance(made, ast.Call) and callee(made) == "Softmax"


_BESIDE = re.compile(r"at+n|att|score|weight|prob|alpha|cache|mask", re.IGNORECASE)


def is_beside(attribute: str) -> bool:
    """Whether what a module keeps by this name is no result, but what people look at or use again: its weights, a cache."""
    return _BESIDE.search(attribute) is not None


def silent(program: Program) -> list[ast.AST]:
    """The last statements of each live `forward` that neither returns nor keeps a value.

    One that ends in an exception, that calls nothing, or that keeps its result in an attribute is meant to be like that.
    """
    found: list[ast.AST] = []
    for node in program.each(ast.FunctionDef):
        if not isinstance(node, ast.FunctionDef) or node.name != "forward" or program.owner(node) is None:
            continue
        inside = [one for one in ast.walk(node) if one is not node]
        gives = any(
            isinstance(one, ast.Yield | ast.YieldFrom | ast.Global)
            or (isinstance(one, ast.Return) and one.value is not None)
            or (isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and not is_beside(one.attr))
            for one in inside
        )
        if not gives and not isinstance(node.body[-1], ast.Raise) and any(isinstance(one, ast.Call) for one in inside):
            found.append(node.body[-1])
    return found
