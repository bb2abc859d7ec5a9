"""What a source sets, imports and reads at its top level: numbers, other names of definitions, makers of layers."""

from __future__ import annotations

import ast
import builtins
import symtable
import sys

from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition

_PACKAGES = sys.stdlib_module_names | {
    "torch",
    "torchvision",
    "numpy",
    "einops",
    "jaxtyping",
}  # these have no sizes of the code


def parts(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The pairs of an assignment: two, of `d_model, n_heads = 512, 8`; one value for several names, where it makes all."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
            return list(zip(target.elts, value.elts, strict=True))
        return [(each, value) for each in target.elts]
    return [(target, value)]


def may_be_number(value: ast.expr) -> bool:
    """Whether it may be a number: one, an expression with one, or a part of a config, as `cfg["n_embd"]` and `args.d_model`."""
    of_config = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
    return of_config or isinstance(value, (ast.Constant, ast.BinOp, ast.Attribute))


def computed(statements: list[ast.stmt]) -> frozenset[str]:
    """The names that are set to what is computed in another way than by one division."""
    return frozenset(
        target.id
        for node in statements
        if isinstance(node, ast.Assign)
        for target, value in (pair for each in node.targets for pair in parts(each, node.value))
        if isinstance(target, ast.Name) and isinstance(value, ast.BinOp)
        if not isinstance(value.op, ast.FloorDiv)
        or any(isinstance(one, ast.BinOp) for one in (value.left, value.right))
    )


def aliases(statements: list[ast.stmt], found: dict[str, Definition]) -> dict[str, str]:
    """Other names of definitions, as in `Attention = MultiHeadAttention`."""
    return {
        target.id: node.value.id
        for node in statements
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in found
        for target in node.targets
        if isinstance(target, ast.Name) and target.id not in found
    }


def makers(statements: list[ast.stmt]) -> dict[str, str]:
    """What is set at module level to make something later, with its line: a lambda, a `partial` of a class, or an eps."""
    return {
        target.id: ast.unparse(node)
        for node in statements
        if isinstance(node, ast.Assign)
        if isinstance(node.value, ast.Lambda)
        or (
            isinstance(node.value, ast.Constant) and isinstance(node.value.value, float) and 0 < node.value.value < 1e-3
        )
        or (isinstance(node.value, ast.Call) and last_part(node.value.func) == "partial")
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def modules(statements: list[ast.stmt]) -> list[str]:
    """The names of what stands for a module of another file: `layers = SimpleNamespace(Norm=Norm)`."""
    return [
        target.id
        for node in statements
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if isinstance(node.value.func, ast.Attribute) and node.value.func.attr == "SimpleNamespace"
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def unset(source: bytes, *, top: bool = False) -> set[str]:
    """The names that its functions read and nothing sets: of code without the cell or the file that has its sizes.

    `top`: also those that are read outside of all functions, as the `nn` of `class Attention(nn.Module)`.
    """
    try:
        table = symtable.symtable(source.decode("utf-8"), "source", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return set()
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    found = {symbol.get_name() for symbol in table.get_symbols() if top and symbol.is_referenced()}
    waiting = list(table.get_children())
    while waiting:
        inner = waiting.pop()
        waiting += inner.get_children()
        found |= {symbol.get_name() for symbol in inner.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        own |= {
            symbol.get_name() for symbol in inner.get_symbols() if symbol.is_declared_global() and symbol.is_assigned()
        }
    return found - own - set(dir(builtins))


def set_by_functions(tree: ast.Module) -> set[str]:
    """The names that a function sets at module level, when it is called: `global BLOCK_SIZE`."""
    return {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}


def meant_of_self(tree: ast.Module) -> set[str]:
    """The names that a method reads alone and that its class has as attributes: `d_k` where `self.d_k` is meant.

    What a constructor reads alone may be a number at module level, which it keeps.
    """
    found: set[str] = set()
    for one in ast.walk(tree):
        if not isinstance(one, ast.ClassDef):
            continue
        kept = {
            node.attr
            for node in ast.walk(one)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
        }
        methods = [each for each in one.body if isinstance(each, ast.FunctionDef)]
        alone = {
            each.name: {node.id for node in ast.walk(each) if isinstance(node, ast.Name)} & kept for each in methods
        }
        in_constructor = alone.get("__init__", set())
        found |= {name for method, names in alone.items() if method != "__init__" for name in names} - in_constructor
    return found


def never_set(tree: ast.Module, unset: set[str]) -> set[str]:
    """The unset names that calls of classes read, where all sizes are arguments: no constructor, and no function, reads one."""
    calls: set[str] = set()
    rest: set[str] = set()
    for one in tree.body:
        for part in one.body if isinstance(one, ast.ClassDef) else [one]:
            is_call = isinstance(one, ast.ClassDef) and isinstance(part, ast.FunctionDef) and part.name != "__init__"
            names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)} & unset
            (calls if is_call else rest).update(names)
    return set() if rest else calls


def statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements at the top level, also those in a condition or a `try`."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If):
            found += [*statements(node.body), *statements(node.orelse)]
        elif isinstance(node, ast.Try):
            found += [
                *statements(node.body),
                *(each for handler in node.handlers for each in statements(handler.body)),
            ]
        else:
            found.append(node)
    return found


def imports(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[(alias.asname or alias.name).partition(".")[0]] = alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = "." * node.level + (node.module or "").partition(".")[0]
    return found


def imported_sizes(tree: ast.Module) -> set[str]:
    """The names of sizes that come from other files and are not called: `from constants import D_MODEL, n_heads`."""
    found = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in _PACKAGES
        for alias in node.names
        if alias.asname is None
    }
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return {
        name for name in found - called if name.isupper() or (name.islower() and vocabulary.size_of(name) is not None)
    }


def last_part(node: ast.expr) -> str:
    """The last part of a dotted name: `Linear` of `nn.Linear`."""
    return ast.unparse(node).rpartition(".")[2]
