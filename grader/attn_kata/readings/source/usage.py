"""How the rest of a source uses a definition: what its own callers give it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of, tree_of

_ATTENTION = re.compile(r"att", re.IGNORECASE)
_ANOTHER_LENGTH = re.compile(r"enc|mem|src|source|context|cond|^e_", re.IGNORECASE)


def is_given_another_length(definition: Definition, structure: Structure) -> bool:
    """Whether a class of the source calls it with its own tokens as query and those of an encoder as keys."""
    return any(_crosses(call) for other in structure.definitions for call in _calls(definition, other, structure))


def is_given_its_own_alone(definition: Definition, structure: Structure) -> bool:
    """Whether classes of the source call it, and make its query and its keys of the same each time: attend(norm(x), x, x)."""
    every = [call for other in structure.definitions for call in _calls(definition, other, structure)]
    return bool(every) and all(
        len(call.args) > 1 and _names(call.args[0]) == _names(call.args[1]) != set() for call in every
    )


def adds_it_as_it_is(definition: Definition, structure: Structure) -> str:
    """The class of the source that adds what it returns straight to something, with no layer between; "" without one.

    Every class that uses it must do so, as a layer of another one may be the output layer: BertSelfOutput.
    """
    used, straight = _users(definition, structure)
    return used[0] if used and straight else ""


def _users(definition: Definition, structure: Structure) -> tuple[list[str], bool]:
    """The classes of the source that use it, and whether each of them adds what it returns straight to something."""
    found = {other.name: _calls_in(definition, other, structure) for other in structure.definitions}
    used = {name: (tree, calls) for name, (tree, calls) in found.items() if calls}
    return list(used), all(_is_added(call, _parents(tree)) for tree, calls in used.values() for call in calls)


_OUTPUT = re.compile(
    r"(?i)to_out|(?:out|o|output|c|final)_?proj(?:ection)?|proj(?:ection)?|w_?o|fc_out|out_fc|unify_?heads"
)


def output_that_is_nothing(definition: Definition, structure: Structure) -> str:
    """The attribute with the name of an output layer that is always nn.Identity(), and that the call applies; or "".

    "" too where a class of the source uses it and may have the layer itself.
    """
    if not _users(definition, structure)[1]:
        return ""
    code = code_of(definition.text)
    for name in re.findall(r"^\s*self\.(\w+)\s*=\s*(?:torch\.)?nn\.Identity\(\)\s*$", code, re.MULTILINE):
        always = len(re.findall(rf"\bself\.{name}\s*=(?!=)", code)) == 1
        of_others = any(re.search(rf"\.\w+\.{name}\s*=(?!=)", code_of(one.text)) for one in structure.definitions)
        if always and not of_others and _OUTPUT.fullmatch(name) and re.search(rf"\bself\.{name}\(", code):
            return str(name)
    return ""


def _parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


_CHANGES_NO_WIDTH = re.compile(
    r"drop|norm|ln_?\d*$|identity", re.IGNORECASE
)  # what may stand between, as no output layer does


def _is_added(node: ast.AST, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether every use of this value is in a sum, also by way of a name, a place of a tuple, a norm or a dropout.

    `above`: the node around each.
    """
    parent = above.get(node)
    if isinstance(parent, ast.BinOp):
        return isinstance(parent.op, ast.Add)
    if isinstance(parent, ast.AugAssign):
        return isinstance(parent.op, ast.Add)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return _is_added(parent, above)
    if isinstance(parent, ast.Call) and node in parent.args:
        name = ast.unparse(parent.func).rpartition(".")[2]
        return _CHANGES_NO_WIDTH.search(name) is not None and _is_added(parent, above)
    if not isinstance(parent, ast.Assign):
        return False
    target = parent.targets[0]
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    around: ast.AST | None = parent
    while around is not None and not isinstance(around, ast.FunctionDef):
        around = above.get(around)
    if not isinstance(first, ast.Name) or around is None:
        return False
    below = [
        one
        for one in ast.walk(around)
        if isinstance(one, ast.Name) and one.id == first.id and one.lineno > parent.lineno
    ]
    again = [one.lineno for one in below if isinstance(one.ctx, ast.Store)]
    uses = [one for one in below if isinstance(one.ctx, ast.Load) and one.lineno <= min(again, default=one.lineno)]
    return bool(uses) and all(_is_added(one, above) for one in uses)


def is_given_size_of_head(parameter: str, definition: Definition, structure: Structure) -> bool:
    """Whether a class of the source builds it with the size of one head for it: `MultiHead(heads, dim // heads)`."""
    for other in structure.definitions:
        if other is definition or not other.is_class:
            continue
        tree = tree_of(other.text)
        local = {
            node.targets[0].id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == definition.name:
                given = dict(zip((one.name for one in definition.build), call.args, strict=False))
                given |= {one.arg: one.value for one in call.keywords if one.arg}
                if parameter in given and _is_size_of_head(given[parameter], local):
                    return True
    return False


def _is_size_of_head(value: ast.expr, local: dict[str, ast.expr]) -> bool:
    if isinstance(value, ast.Name) and value.id in local:
        value = local[value.id]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv):
        return vocabulary.size_of(ast.unparse(value.right).rpartition(".")[2]) == "H"
    return (
        isinstance(value, ast.Name | ast.Attribute) and vocabulary.size_of(ast.unparse(value).rpartition(".")[2]) == "D"
    )


def _calls(definition: Definition, other: Definition, structure: Structure) -> list[ast.Call]:
    """The calls of modules of this definition in another class, with the names that were given to their arguments at first."""
    return _calls_in(definition, other, structure)[1]


def _calls_in(definition: Definition, other: Definition, structure: Structure) -> tuple[ast.Module, list[ast.Call]]:
    """The same, with the tree that they are in."""
    if not other.is_class or other is definition:
        return ast.Module(body=[], type_ignores=[]), []
    held = {name for name, made in other.layers.items() if made == definition.name}
    held |= {one.name for one in other.build if re.search(rf"\b{re.escape(definition.name)}\b", one.annotation)}
    if not _has_another(definition, structure):  # DecoderLayer(size, self_attn, src_attn), which is given nothing else
        held |= {one.name for one in other.build if _ATTENTION.search(one.name)}
    tree = tree_of(other.text)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            _Renamed(dict(_renamed(function))).visit(function)
    return tree, [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and isinstance(one.func.value, ast.Name)
        and one.func.value.id == "self"
        and one.func.attr in held
    ]


def _has_another(definition: Definition, structure: Structure) -> bool:
    """Whether another class of the source is an attention, by its name."""
    return any(one.is_class and one is not definition and _ATTENTION.search(one.name) for one in structure.definitions)


def _renamed(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """The local names that are set once, to another name: `m = memory`."""
    inside = list(ast.walk(function))
    stored = [one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    for one in inside:
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Name):
            name, value = one.targets[0].id, one.value.id
            if stored.count(name) == 1 and value not in stored:
                yield name, value


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node


def _crosses(call: ast.Call) -> bool:
    if len(call.args) < 2:
        return False
    query, key = (_names(one) for one in call.args[:2])
    return bool(query and key) and not query & key and any(map(_ANOTHER_LENGTH.search, key))


def _names(node: ast.expr) -> set[str]:
    """The variables in an expression."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and one.id != "self"}
