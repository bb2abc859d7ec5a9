"""The line of a mistake in splitting or merging heads."""

from __future__ import annotations

import ast
import re

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.scores import softmaxes
from attn_kata.diagnosis.lines.syntax import callee, is_method, line, number, only_line, other_arguments, subject
from attn_kata.diagnosis.lines.values import is_transposed, mentions_shape

_HEADS = re.compile(r"\w*heads|n_?heads?|nhead|num_head|h|nh|n_h", re.IGNORECASE)


def _sizes(call: ast.Call) -> list[ast.expr]:
    """The sizes that a view or reshape asks for."""
    given = other_arguments(call)
    if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
        return given[0].elts
    return given


def _is_heads(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return _HEADS.fullmatch(name) is not None


def _all_in_one_function(program: Program, nodes: list[ast.Call]) -> int | None:
    """The line of the first node, if all nodes are in one function; each of them makes the mistake."""
    if not nodes or len({program.scope(node) for node in nodes}) > 1:
        return None
    return line(nodes[0])


def split_no_transpose(program: Program) -> int | None:
    """The first view that puts heads before time."""
    found = []
    for call in program.calls():
        sizes = _sizes(call)
        if callee(call) not in ("view", "reshape") or any(isinstance(one, ast.Starred) for one in sizes):
            continue
        folded = len(sizes) == 3 and isinstance(sizes[0], ast.BinOp) and any(map(_is_heads, _factors(sizes[0])))
        if (folded or (len(sizes) == 4 and _is_heads(sizes[1]))) and not is_method_of_transposed(program, call):
            found.append(call)
    return _all_in_one_function(program, found)


_SIZE_OF_HEAD = re.compile(r"(?i)\w*(?:dim|size|depth)|d_?[kvh]|d_?head|head_?d")


def splits_of_linear(program: Program) -> list[ast.Call]:
    """The views of what a linear layer gives, (B, T, E), with heads before time: `self.query(x).view(B, heads, -1, d_k)`."""
    found = []
    for call in program.calls():
        sizes, tensor = _sizes(call), subject(call)
        if callee(call) not in ("view", "reshape") or len(sizes) != 4 or tensor is None or not _is_heads(sizes[1]):
            continue
        made = tensor if isinstance(tensor, ast.Call) else program.value(tensor)
        layer = program.value(made.func) if isinstance(made, ast.Call) else None
        last = ast.unparse(sizes[3]).rpartition(".")[2]
        if isinstance(layer, ast.Call) and callee(layer) == "Linear" and _SIZE_OF_HEAD.fullmatch(last):
            found.append(call)
    return found


def _factors(node: ast.expr) -> list[ast.expr]:
    return [node.left, node.right] if isinstance(node, ast.BinOp) else [node]


def is_method_of_transposed(program: Program, call: ast.Call) -> bool:
    """Whether what is reshaped was transposed before."""
    tensor = subject(call)
    return tensor is not None and _moved(program, tensor)


def _moved(program: Program, node: ast.expr, depth: int = 0) -> bool:
    if is_transposed(node) or depth > 4:
        return depth <= 4
    if isinstance(node, ast.Call) and is_method(node):
        return _moved(program, subject(node) or node.func, depth + 1)
    value = program.value(node)
    return value is not None and _moved(program, value, depth + 1)


def split_interleaved(program: Program) -> int | None:
    """The first view, or rearrange pattern, that puts heads last."""
    found = [
        call
        for call in program.calls()
        if (callee(call) in ("view", "reshape") and len(_sizes(call)) == 4 and _is_heads(_sizes(call)[3]))
        or (_pattern(call) is not None and _heads_inner(call, left=True))
    ]
    return _all_in_one_function(program, found)


def _pattern(call: ast.Call) -> str | None:
    if callee(call) != "rearrange":
        return None
    texts = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return texts[0] if texts and "->" in texts[0] else None


def _heads_inner(call: ast.Call, *, left: bool) -> bool:
    """Whether the group of two in a rearrange has the heads second."""
    before, _, after = (_pattern(call) or "->").partition("->")
    group = re.search(r"\((\w+)\s+(\w+)\)", before if left else after)
    if group is None:
        return False
    axes = {one.arg for one in call.keywords if one.arg and _is_heads(one.value)}
    if not axes and not left:
        axes = {name for name in group.groups() if _HEADS.fullmatch(name)}
    return group.group(2) in axes or (
        left and bool(call.keywords) and not axes and _HEADS.fullmatch(group.group(2)) is not None
    )


def merge_no_transpose(program: Program) -> int | None:
    """The one reshape after attention of a tensor that was not transposed back."""
    found = [call for call in _merging(program) if not is_method_of_transposed(program, call)]
    return only_line(found) if len(found) == 1 else None


def _merging(program: Program) -> list[ast.Call]:
    """The reshapes to fewer dimensions after the last softmax, or in a function with 'merge' in its name."""
    after = {program.scope(call): line(call) for call in softmaxes(program)}
    found = []
    for call in program.calls():
        name, sizes = callee(call), _sizes(call)
        scope = program.scope(call)
        merges = "merge" in getattr(scope, "name", "") or "combine" in getattr(scope, "name", "")
        as_another = len(sizes) == 1 and mentions_shape(sizes[0])
        fewer = name in ("view", "reshape") and (len(sizes) in (2, 3) or as_another)
        fewer = fewer or (name == "flatten" and bool(sizes))
        if fewer and (merges or (scope in after and line(call) > after[scope]) or _uses_attention(program, call)):
            found.append(call)
    return found


def _uses_attention(program: Program, call: ast.Call) -> bool:
    """Whether a reshape works on the result of a helper with the softmax."""
    helpers = {getattr(program.scope(one), "name", "") for one in softmaxes(program)} - {"__init__", "forward", ""}
    tensor = subject(call)
    made = program.resolved(tensor) if tensor is not None else None
    return made is not None and any(isinstance(part, ast.Call) and callee(part) in helpers for part in ast.walk(made))


def merge_interleaved(program: Program) -> int | None:
    """The permutation, or the pattern, that puts the heads last."""
    found = []
    for call in program.calls():
        order = [number(one) for one in _sizes(call)] if callee(call) == "permute" else []
        if order in ([0, 2, 3, 1], [0, -2, -1, 1]) or (_pattern(call) is not None and _heads_inner(call, left=False)):
            found.append(call)
    return only_line(found)
