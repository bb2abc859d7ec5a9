"""Small functions about one node of a syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

_MODULES = re.compile(r"torch|F|nn|np|numpy|math|functional|einops|fn|tf|T")


def on_self(node: ast.AST) -> bool:
    """Whether a node is `self.<attr>`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def is_module(node: ast.expr) -> bool:
    """Whether a node is `torch`, `F`, `nn.functional` and the like."""
    if isinstance(node, ast.Attribute):
        return is_module(node.value)
    return isinstance(node, ast.Name) and _MODULES.fullmatch(node.id) is not None


def callee(call: ast.Call) -> str:
    """The last name of the called function: `softmax` of `F.softmax(…)` and of `x.softmax(…)`, or ""."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def is_method(call: ast.Call) -> bool:
    """Whether a call is a method of a value, not a function of a module nor of `self`."""
    return isinstance(call.func, ast.Attribute) and not is_module(call.func.value) and not on_self(call.func)


def subject(call: ast.Call) -> ast.expr | None:
    """The tensor that a call works on: the receiver of a method, the first argument of a function."""
    if isinstance(call.func, ast.Attribute) and is_method(call):
        return call.func.value
    return call.args[0] if call.args else keyword(call, "input")


def other_arguments(call: ast.Call) -> list[ast.expr]:
    """The positional arguments without the subject."""
    return call.args if is_method(call) else call.args[1:]


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """The argument given by one of these names."""
    return next((one.value for one in call.keywords if one.arg in names), None)


def number(node: ast.expr | None) -> float | None:
    """The value of a literal number: `-1`, `0.5`, `1 / 2`, `-1e9`, `float("-inf")`, `float("1e20")`, `-math.inf`."""
    if isinstance(node, ast.Constant):
        value = node.value
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = number(node.operand)
        return inner if inner is None or isinstance(node.op, ast.UAdd) else -inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        above, below = number(node.left), number(node.right)
        return above / below if above is not None and below else None
    if isinstance(node, ast.Attribute):
        return {"inf": float("inf")}.get(node.attr)
    if isinstance(node, ast.Call) and callee(node) == "float" and len(node.args) == 1:
        only = node.args[0]
        if isinstance(only, ast.Constant) and isinstance(only.value, str):
            return _of_text(only.value)
        return number(only)
    return None


def _of_text(text: str) -> float | None:
    """What float() makes of a text: "-inf", "1e20"; None for no number, and for nan."""
    try:
        value = float(text)
    except ValueError:
        return None
    return None if value != value else value


def position(node: ast.AST) -> tuple[int, int]:
    """Where a node begins."""
    return int(getattr(node, "lineno", 0)), int(getattr(node, "col_offset", 0))


def line(node: ast.AST) -> int:
    """The line to show: of a method call in a chain over several lines, the line of the method's name."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.end_lineno or node.lineno
    if isinstance(node, ast.Attribute):
        return node.end_lineno or node.lineno
    if isinstance(node, ast.BinOp):
        return node.right.lineno
    return position(node)[0]


def only_line(nodes: Sequence[ast.AST]) -> int | None:
    """The line of the nodes if they all share one."""
    lines = {line(node) for node in nodes}
    return lines.pop() if len(lines) == 1 else None


def mentions(node: ast.AST, *names: str) -> bool:
    """Whether a name, an attribute or a called function of one of these names occurs in a node."""
    return any(
        (isinstance(part, ast.Name) and part.id in names) or (isinstance(part, ast.Attribute) and part.attr in names)
        for part in ast.walk(node)
    )


def role(name: str) -> str:
    """ "q", "k" or "v" for the names that people give to queries, keys, values and their layers; "" for others."""
    plain = name.lower().strip("_")
    plain = re.sub(r"^(w|to|linear|fc|proj|lin|x|all|multi_head|mh|split)_?(?=[qkv]|quer|key|val)", "", plain)
    plain = re.sub(r"_?(proj|projection|linear|layer|heads?|states?|s|h|mh|split|out|i|\d+)$", "", plain)
    return {
        "q": "q",
        "query": "q",
        "queries": "q",
        "querie": "q",
        "k": "k",
        "key": "k",
        "v": "v",
        "value": "v",
        "val": "v",
    }.get(plain, "")
