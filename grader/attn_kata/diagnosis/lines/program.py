"""An attempt's source as a tree of live code, with the values of its names."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from attn_kata.diagnosis.lines.live import Function, live
from attn_kata.diagnosis.lines.syntax import callee, on_self, position

_MOST_BYTES, _MOST_NODES = 200_000, 6_000  # ten times a usual attempt; the finders are not made for more
_DEEPEST = 12  # assignments followed


@dataclass(frozen=True, kw_only=True, eq=False)
class Binding:
    """One place where a name gets a value; `value` is None if it is not a single expression (a parameter, a loop)."""

    node: ast.AST
    value: ast.expr | None
    unpacked: ast.expr | None = None  # what was unpacked into several names


class Program:
    """The live part of a source; with `every`, all of its definitions are. Raises the errors of `ast.parse`."""

    def __init__(self, source: bytes, *, every: bool = False) -> None:
        if len(source) > _MOST_BYTES:
            raise ValueError("too long to look at")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = ast.parse(source)
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        if len(self.parents) > _MOST_NODES:
            raise ValueError("too long to look at")
        self.nodes = sorted(live(self.tree, every=every), key=position)
        self.known: dict[tuple[str, ast.AST], bool] = {}  # answers of `values`, by question and node
        self._scopes: dict[ast.AST, ast.AST] = {}
        self._reached: dict[ast.expr, Binding | None] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._loads: dict[str, list[ast.Name]] = {}
        self._bindings: dict[tuple[ast.AST, str], list[Binding]] = {}
        self._attributes: dict[tuple[ast.AST | None, str], list[Binding]] = {}
        for node in self.nodes:
            self._bind(node)
            if isinstance(node, ast.Call):
                self._calls.setdefault(callee(node), []).append(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._loads.setdefault(node.id, []).append(node)

    def each(self, *types: type[ast.AST]) -> Iterator[ast.AST]:
        """Live nodes of these types in the order of the source."""
        return (node for node in self.nodes if isinstance(node, types))

    def calls(self) -> Iterator[ast.Call]:
        """Live calls in the order of the source."""
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent outwards."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function around a node."""
        return next((up for up in self.ancestors(node) if isinstance(up, Function)), None)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module."""
        found = self._scopes.get(node)
        if found is None:
            found = self._scopes[node] = self.function(node) or self.tree
        return found

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The class around a node."""
        return next((up for up in self.ancestors(node) if isinstance(up, ast.ClassDef)), None)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is part of."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def blocks(self, node: ast.AST) -> list[tuple[ast.AST, str]]:
        """The lists of statements that a node lies in, innermost first, as (owner of the list, name of its field)."""
        found = []
        child: ast.AST = self.statement(node)
        for parent in self.ancestors(child):
            if isinstance(child, ast.stmt | ast.ExceptHandler):
                fields = ("body", "orelse", "finalbody", "handlers")
                found += [(parent, field) for field in fields if child in getattr(parent, field, ())]
            if isinstance(parent, Function):
                break
            child = parent
        return found

    def in_loop(self, node: ast.AST) -> bool:
        """Whether a node may run more than once in a call."""
        for up in self.ancestors(node):
            if isinstance(up, ast.For | ast.While | ast.AsyncFor):
                return True
            if isinstance(up, Function):
                return False
        return False

    def bindings(self, scope: ast.AST, name: str) -> list[Binding]:
        """Where `name` gets a value in `scope`, in the order of the source."""
        return self._bindings.get((scope, name), [])

    def attribute(self, node: ast.Attribute) -> list[Binding]:
        """Where `self.<attr>` gets a value in its class."""
        return self._attributes.get((self.owner(node), node.attr), []) if on_self(node) else []

    def value(self, node: ast.expr) -> ast.expr | None:
        """The expression that a name or `self.<attr>` stands for at its use; None if this is not certain."""
        binding = self.binding(node)
        if binding is None:
            return None
        if isinstance(binding.node, ast.arg):
            return self._argument(binding.node)
        return binding.value

    def binding(self, node: ast.expr) -> Binding | None:
        """The only binding of a name or `self.<attr>` at its use, if this is certain."""
        if node not in self._reached:
            self._reached[node] = self._find_binding(node)
        return self._reached[node]

    def _find_binding(self, node: ast.expr) -> Binding | None:
        if isinstance(node, ast.Attribute):
            found = self.attribute(node)
            return found[0] if len(found) == 1 else None
        if not isinstance(node, ast.Name):
            return None
        scope: ast.AST = self.scope(node)
        while True:
            found = self.bindings(scope, node.id)
            if found:
                return (
                    self._reaching(node, found) if scope is self.scope(node) else found[0] if len(found) == 1 else None
                )
            if scope is self.tree:
                return None
            scope = self.scope(scope)

    def resolved(self, node: ast.expr) -> ast.expr:
        """`node`, or the expression behind it, following names as long as this is certain."""
        for _ in range(_DEEPEST):
            value = self.value(node)
            if value is None:
                return node
            node = value
        return node

    def loads(self, scope: ast.AST, name: str) -> list[ast.Name]:
        """Where `name` is read in `scope`, nested functions included."""
        return [
            node for node in self._loads.get(name, ()) if self.scope(node) is scope or scope in self.ancestors(node)
        ]

    def _reaching(self, use: ast.Name, found: list[Binding]) -> Binding | None:
        statement = self.statement(use)
        here = position(statement)
        places = [(0, 0) if isinstance(one.node, ast.arg) else position(one.node) for one in found]
        if places[0] >= here:
            return None
        last = found[bisect_left(places, here) - 1]
        if isinstance(last.node, ast.arg):
            return last
        around = self.blocks(last.node)
        sure = bool(around) and around[0] in self.blocks(use)
        return last if sure and not (places[-1] >= here and self.in_loop(use)) else None

    def _argument(self, parameter: ast.arg) -> ast.expr | None:
        """The argument that a helper's only call passes for its parameter."""
        function = self.function(parameter)
        if function is None or function.name in ("__init__", "forward"):
            return None
        calls = [call for call in self._calls.get(function.name, ()) if self.scope(call) is not function]
        if len(calls) != 1 or any(isinstance(one, ast.Starred) for one in calls[0].args):
            return None
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        if names[:1] == ["self"]:
            names = names[1:]
        passed = dict(zip(names, calls[0].args, strict=False))
        passed.update({one.arg: one.value for one in calls[0].keywords if one.arg})
        return passed.get(parameter.arg)

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.arg):
            self._bound(node, node.arg, Binding(node=node, value=None))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(node, target, node.value)
        elif (isinstance(node, ast.AnnAssign) and node.value is not None) or isinstance(node, ast.NamedExpr):
            self._target(node, node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._target(node, node.target, None)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._target(node.target, node.target, None)
        elif isinstance(node, ast.Call) and callee(node) == "register_buffer" and len(node.args) >= 2:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                binding = Binding(node=node, value=node.args[1])
                self._attributes.setdefault((self.owner(node), name.value), []).append(binding)

    def _target(self, node: ast.AST, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(values):
                values = list(value.elts)
            for part, one in zip(target.elts, values, strict=True):
                if one is None and isinstance(part, ast.Name):
                    self._bound(node, part.id, Binding(node=node, value=None, unpacked=value))
                elif one is None and isinstance(part, ast.Attribute) and on_self(part):
                    binding = Binding(node=node, value=None, unpacked=value)
                    self._attributes.setdefault((self.owner(node), part.attr), []).append(binding)
                else:
                    self._target(node, part, one)
        elif isinstance(target, ast.Starred):
            self._target(node, target.value, None)
        elif isinstance(target, ast.Name):
            self._bound(node, target.id, Binding(node=node, value=value))
        elif isinstance(target, ast.Attribute) and on_self(target):
            self._attributes.setdefault((self.owner(node), target.attr), []).append(Binding(node=node, value=value))

    def _bound(self, node: ast.AST, name: str, binding: Binding) -> None:
        self._bindings.setdefault((self.scope(node), name), []).append(binding)
