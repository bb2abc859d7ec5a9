"""The line of a mistake in how a module keeps its layers, in pooling, or in the classifier."""

from __future__ import annotations

import ast
import re

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.scores import scalings, softmaxes
from attn_kata.diagnosis.lines.syntax import callee, line, mentions, number, on_self, only_line, subject

_LAYERS = {"Linear", "Parameter", "Embedding", "Conv1d", "LayerNorm", "Bilinear"}


def made_when_called(program: Program) -> list[ast.Call]:
    """The layers made in `forward`, or in a function that it calls."""
    functions = {node.name: node for node in program.nodes if isinstance(node, ast.FunctionDef)}
    reached: set[str] = set()
    further = {"forward", "__call__"} & set(functions)
    while further:
        reached |= further
        calls = [node for name in further for node in ast.walk(functions[name]) if isinstance(node, ast.Call)]
        further = {callee(call) for call in calls} & set(functions) - reached - {"__init__"}
    return [
        call
        for call in program.calls()
        if callee(call) in _LAYERS
        and not on_self(call.func)  # self.LayerNorm(x) calls a layer, and makes none
        and (function := program.function(call)) is not None
        and function.name in reached
    ]


def linear_made_when_called(program: Program) -> list[ast.Call]:
    """The linear layers that every call makes anew, under no condition: with random weights that nothing can train."""
    found = [call for call in made_when_called(program) if callee(call) == "Linear"]
    return [call for call in found if not _under_a_condition(program, call)]


def _under_a_condition(program: Program, node: ast.AST) -> bool:
    while (above := program.parents.get(node)) is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, ast.If):
            return True
        node = above
    return False


def rebuilt(program: Program) -> int | None:
    """The first layer made outside __init__, if all such layers are in one function."""
    found = made_when_called(program)
    return line(found[0]) if found and len({program.scope(one) for one in found}) == 1 else None


def unregistered(program: Program) -> int | None:
    """The line of the one list or dict of layers that the module keeps."""
    found = []
    for node in program.each(ast.Assign):
        assert isinstance(node, ast.Assign)
        target, value = node.targets[0], node.value
        if not on_self(target) or not isinstance(value, ast.List | ast.Dict | ast.ListComp | ast.DictComp | ast.Tuple):
            continue
        empty = isinstance(value, ast.List | ast.Dict) and not ast.unparse(value).strip("[]{} ")
        makes = any(isinstance(part, ast.Call) and callee(part)[:1].isupper() for part in ast.walk(value))
        if makes or empty:
            found.append(node)
    return only_line(found)


def repeated(program: Program) -> int | None:
    """The line of the one list times a number."""
    return only_line(
        [
            node
            for node in program.each(ast.BinOp)
            if isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and isinstance(node.left if isinstance(node.left, ast.List) else node.right, ast.List)
        ]
    )


def holds_one_several_times(program: Program) -> list[ast.AST]:
    """A list with one and the same layer several times: [nn.Linear(E, E)] * 4, ModuleList([layer for _ in range(4)])."""
    held = [
        each
        for node in program.calls()
        if callee(node) in ("ModuleList", "Sequential")
        for one in node.args
        for each in ast.walk(one)
        if isinstance(each, ast.ListComp)
    ]
    found: list[ast.AST] = [one for one in held if isinstance(one.elt, ast.Name) and one.elt.id not in _set_by(one)]
    for node in program.each(ast.BinOp):
        assert isinstance(node, ast.BinOp)
        lists = [one for one in (node.left, node.right) if isinstance(one, ast.List) and isinstance(node.op, ast.Mult)]
        made = [one for each in lists for one in each.elts]
        if made and all(isinstance(one, ast.Call) and callee(one) in _LAYERS for one in made):
            found.append(node)
    return found


def _set_by(comprehension: ast.ListComp) -> set[str]:
    """The names that a comprehension sets."""
    return {one.id for each in comprehension.generators for one in ast.walk(each.target) if isinstance(one, ast.Name)}


def unchecked(program: Program) -> int | None:
    """The line of the one assert."""
    return only_line(list(program.each(ast.Assert)))


_HEADS = re.compile(r"(num_?|n_?|nr_)?heads?|h|nhead", re.IGNORECASE)


def heads_first(program: Program) -> int | None:
    """The line of the one __init__ whose first argument is the number of heads."""
    made = [node for node in program.nodes if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    return only_line([each for each in made if len(each.args.args) > 2 and _HEADS.fullmatch(each.args.args[1].arg)])


# -------------------------------------------------------------------------------------------------------- pooling


def one_token(program: Program) -> int | None:
    """The line of the one `[:, 0]` or `[:, -1]`."""
    found = []
    for node in program.each(ast.Subscript):
        assert isinstance(node, ast.Subscript)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        if len(parts) >= 2 and isinstance(parts[0], ast.Slice) and number(parts[1]) in (0, -1):
            found.append(node)
    return only_line(found)


def divides_by_length(program: Program) -> int | None:
    """The line of the one division by a plain size."""
    return only_line([one.node for one in scalings(program) if one.exponent == -1])


def embed_scaled(program: Program) -> int | None:
    """The line of the one multiplication by a root."""
    return only_line([one.node for one in scalings(program) if one.exponent == 0.5])


def classifier_softmax(program: Program) -> int | None:
    """The line of the softmax of what the classifier returns."""
    found = []
    for call in softmaxes(program):
        tensor = subject(call)
        made = program.resolved(tensor) if tensor is not None else None
        if made is not None and mentions(made, "classifier"):
            found.append(call)
    return only_line(found)
