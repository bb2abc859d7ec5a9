"""The line of a mistake in the projections, the output or the context."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attn_kata.diagnosis.lines.masks import goes_nowhere
from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, line, number, on_self, only_line, role, subject
from attn_kata.diagnosis.lines.values import is_transposed, products


def _projected(program: Program) -> Iterator[tuple[ast.AST, str, str]]:
    """Assignments of what a layer makes: (node for the line, role of the name, role of the layer).

    A layer is called, `self.key(x)`, or is a matrix in a product, `x @ self.W_key`.
    """
    by_matrix = {
        node: right.attr for node, _, right in products(program) if isinstance(right, ast.Attribute) and on_self(right)
    }
    for node in program.each(ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        for name, value in pairs:
            plain = name.id if isinstance(name, ast.Name) else ""
            layers = [(part, layer) for part in ast.walk(value) if role(layer := by_matrix.get(part, _called(part)))]
            if role(plain) and len(layers) == 1:
                yield layers[0][0], role(plain), role(layers[0][1])


def _called(node: ast.AST) -> str:
    """The name of the layer that is called with an argument, or ""."""
    return callee(node) if isinstance(node, ast.Call) and on_self(node.func) and node.args else ""


def wrong_layer(program: Program, target: str, layer: str) -> int | None:
    """The line where the layer `layer` makes `target`."""
    found = [node for node, made, by in _projected(program) if (made, by) == (target, layer)]
    return only_line(found) if len(found) == 1 else None


def chained(program: Program) -> int | None:
    """The line where the key layer gets what the query layer has made: `x = self.q_proj(x)` above `k = self.k_proj(x)`."""
    found = []
    for call in program.calls():
        if role(_called(call)) != "k":
            continue
        given = call.args[0]
        sources = [given]
        if isinstance(given, ast.Name):
            above = program.bindings(program.scope(given), given.id)
            sources += [one.value for one in above if one.value is not None and (line(one.node) or 0) < call.lineno]
        if any(role(_called(part)) == "q" for one in sources for part in ast.walk(one)):
            found.append(call)
    return only_line(found)


def swapped(program: Program) -> int | None:
    """The line of the product of keys with queries, or of the first of two swapped assignments."""
    crossed = [node for node, made, by in _projected(program) if (made, by) in (("q", "k"), ("k", "q"))]
    if crossed:
        return line(crossed[0]) if len(crossed) == 2 else None
    found = [
        node
        for node, left, right in products(program)
        if _role_of(left) == "k" and _role_of(right) == "q" and is_transposed(right)
    ]
    return only_line(found)


def _role_of(node: ast.expr) -> str:
    return role(_name_of(node))


def _name_of(node: ast.expr) -> str:
    """The name of the tensor of which an expression takes a view, or that it scales: `k` of `(k * scale).mT`; or ""."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        inner = subject(node) if isinstance(node, ast.Call) else node.value
        if inner is None or on_self(node):
            return ""
        node = inner
    return node.id if isinstance(node, ast.Name) else ""


def of_one_tensor(program: Program) -> list[ast.AST]:
    """Products of queries with the same queries, or of keys with the same keys."""
    found: list[tuple[ast.AST, ast.expr, ast.expr]] = [
        (node, left, right) for node, left, right in products(program) if is_transposed(left) or is_transposed(right)
    ]
    einsums = [call for call in program.calls() if callee(call) == "einsum" and len(call.args) == 3]
    found += [(call, call.args[1], call.args[2]) for call in einsums]
    return [node for node, left, right in found if _role_of(left) in ("q", "k") and _name_of(left) == _name_of(right)]


def same_tensor(program: Program) -> int | None:
    """The line of the one product of queries with queries, or of keys with keys."""
    return only_line(of_one_tensor(program))


def chunk_order(program: Program) -> int | None:
    """The line where the fused projection is unpacked in another order than q, k, v."""
    found = []
    for node in program.each(ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not isinstance(target, ast.Tuple) or len(target.elts) != 3:
            continue
        roles = [role(one.id) if isinstance(one, ast.Name) else "" for one in target.elts]
        indices = _indices(node.value)
        if "" in roles or len(set(roles)) != 3:
            continue
        cut_at_once = not indices and not isinstance(node.value, ast.Tuple)
        ordered = (
            [indices[roles.index(one)] for one in "qkv"] == sorted(indices) if indices else roles == ["q", "k", "v"]
        )
        if not ordered and (indices or cut_at_once):
            found.append(node)
    return only_line(found)


def _indices(node: ast.expr) -> list[float]:
    """The literal indices of `qkv[1], qkv[0], qkv[2]`."""
    if not isinstance(node, ast.Tuple):
        return []
    found = [number(one.slice) if isinstance(one, ast.Subscript) else None for one in node.elts]
    return [one for one in found if one is not None] if None not in found else []


def fused_interleaved(program: Program) -> int | None:
    """The line of the one reshape of the fused projection with a 3 in it, or of the one cut with a step of 3."""
    found: list[ast.AST] = [
        call
        for call in program.calls()
        if callee(call) in ("view", "reshape", "unflatten")
        and any(_has_three(one) for one in ast.walk(call) if isinstance(one, ast.expr))
    ]
    if not found:
        stepped = [node for node in program.each(ast.Slice) if isinstance(node, ast.Slice) and number(node.step) == 3]
        return only_line(list(stepped)) or (
            line(stepped[0]) if stepped and len({program.scope(one) for one in stepped}) == 1 else None
        )
    return only_line(found)


def _has_three(node: ast.expr) -> bool:
    return number(node) == 3


def output_missing(program: Program) -> int | None:
    """The line of the unused o_proj call, or of the one return of a forward without o_proj."""
    calls = [call for call in program.calls() if on_self(call.func) and callee(call) == "o_proj"]
    if calls:
        lost = []
        for call in calls:
            statement = program.parents.get(call)
            if statement is not None and goes_nowhere(program, statement):
                lost.append(call)
        return only_line(lost) if len(calls) == 1 else None
    reads = [node for node in program.each(ast.Attribute) if isinstance(node, ast.Attribute) and node.attr == "o_proj"]
    if not reads or any(isinstance(node.ctx, ast.Load) for node in reads):
        return None
    return only_line(
        [
            node
            for node in program.each(ast.Return)
            if getattr(program.function(node), "name", "") == "forward"
            and isinstance(node, ast.Return)
            and node.value is not None
        ]
    )


def mix_keys(program: Program) -> int | None:
    """The line of the one product of something other than queries with untransposed keys."""
    found = [
        node
        for node, left, right in products(program)
        if _role_of(right) == "k" and not is_transposed(right) and _role_of(left) not in ("q", "k", "v")
    ]
    return only_line(found) if len(found) == 1 else None


def context_swapped(program: Program) -> int | None:
    """The line where the layer of the queries gets the second argument of forward."""
    return only_line([call for call, second in _layer_inputs(program, "q") if second])


def context_ignored(program: Program) -> int | None:
    """The first line where the layer of the keys or values gets the first argument of forward."""
    found = [call for which in "kv" for call, second in _layer_inputs(program, which) if not second]
    return line(found[0]) if found and len(found) <= 2 else None


def _layer_inputs(program: Program, which: str) -> Iterator[tuple[ast.Call, bool]]:
    """Calls of the layer of a role on a parameter of forward: whether it is the second."""
    for call in program.calls():
        function = program.function(call)
        if function is None or function.name != "forward" or not on_self(call.func) or role(callee(call)) != which:
            continue
        names = [one.arg for one in function.args.args][1:]
        given = call.args[0] if call.args else None
        if isinstance(given, ast.Name) and given.id in names[:2] and len(program.bindings(function, given.id)) == 1:
            yield call, names.index(given.id) == 1
