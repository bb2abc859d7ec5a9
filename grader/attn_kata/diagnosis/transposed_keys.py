"""A product of queries and keys that raises because the dimensions of the keys are in an order that does not fit the queries.

Queries and keys that were made alike have the same dimensions in the same order, so the product needs the last two of the
keys exchanged and nothing else: (…, D, T) for (…, T, D). Any other order is a mistake, whatever the code is given.
"""

from __future__ import annotations

import ast
import re

_DOES_NOT_FIT = re.compile(
    r"Expected size for first two dimensions of batch2 tensor"
    r"|The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension"
)
_PRODUCTS = ("matmul", "bmm")
_OF_QUERIES_AND_KEYS = re.compile(r"(?i)quer(?:y|ies)|keys?|(?<![a-z0-9])[qk](?![a-z0-9])|(?<=_)[qk]\b|\b[qk](?=_)")


def is_wrong(text: str, line: str, code: str) -> bool:
    """Whether the exception `text` of this line is that of a product with keys whose dimensions are in a wrong order.

    `code` is the source without comments. False wherever it cannot be told.
    """
    if _DOES_NOT_FIT.search(text) is None:
        return False
    try:
        statement, tree = ast.parse(line.strip()).body[0], ast.parse(code)
    except (SyntaxError, IndexError):
        return False
    said = ast.unparse(statement)
    around = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
        and any(isinstance(each, ast.stmt) and ast.unparse(each) == said for each in ast.walk(one))
    ]
    products = [pair for one in ast.walk(statement) if (pair := _factors(one)) is not None]
    return any(_are_wrong(queries, keys, one) for one in around for queries, keys in products)


def _factors(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The name of the first factor of a product, without what scales it, and the second factor; or None."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        first, second = node.left, node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PRODUCTS:
        of_torch = len(node.args) == 2
        first, second = (node.args[0], node.args[1]) if of_torch else (node.func.value, node.args[0])
    else:
        return None
    while isinstance(first, ast.BinOp) and isinstance(first.op, (ast.Mult, ast.Div)):
        first = first.left
    return (first.id, second) if isinstance(first, ast.Name) else None


def _are_wrong(queries: str, keys: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether queries and keys are made alike, and the keys alone are then put in an order that does not fit."""
    before = [one for one in ast.walk(function) if isinstance(one, ast.Assign)]
    makes_queries, own_line = _makes(queries, before), ""
    if isinstance(keys, ast.Name):  # a line above has turned them; where the queries are turned too, it is no transpose
        turned = [one.value for one in before if [ast.unparse(each) for each in one.targets] == [keys.id]]
        found = [one for one in turned if _turned(one) is not None and _text(one) not in makes_queries]
        if len(found) != 1:
            return False
        keys, own_line = found[0], _text(found[0])
    own = _turned(keys)
    if own is None:
        return False
    name, order = own
    makes_keys = [text for text in _makes(name, before) if text != own_line]
    alike = makes_queries == makes_keys
    if not alike or (not makes_keys and not {queries, name} <= {one.arg for one in function.args.args}):
        return False
    dimensions = len(order) if len(order) > 2 else _dimensions(makes_keys)
    if dimensions < 3:
        return False
    places = list(range(dimensions))
    if len(order) == 2:
        one, other = (place % dimensions for place in order)
        places[one], places[other] = other, one
    else:
        places = [place % dimensions for place in order]
    return places != [*range(dimensions - 2), dimensions - 1, dimensions - 2]


def _turned(node: ast.expr) -> tuple[str, tuple[int, ...]] | None:
    """The name of what is turned, and the dimensions of `permute`, or the two of `transpose`; None for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if not isinstance(node.func.value, ast.Name) or node.func.attr not in ("permute", "transpose"):
        return None
    given = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List)) else node.args
    try:
        order = tuple(int(ast.literal_eval(one)) for one in given)
    except (ValueError, TypeError):
        return None
    wanted = len(order) == 2 if node.func.attr == "transpose" else len(order) > 2
    return (node.func.value.id, order) if wanted else None


def _makes(name: str, assignments: list[ast.Assign]) -> list[str]:
    """What makes a tensor, line by line."""
    found = []
    for one in assignments:
        for target in one.targets:
            together = [ast.unparse(each) for each in target.elts] if isinstance(target, ast.Tuple) else []
            if name in together:
                found.append(_text(one))
            elif ast.unparse(target) == name:
                found.append(_text(one.value))
    return found


def _text(node: ast.AST) -> str:
    """The source of a node, with one name for queries and keys."""
    return _OF_QUERIES_AND_KEYS.sub("·", ast.unparse(node))


def _dimensions(makes: list[str]) -> int:
    """How many dimensions the last view of a tensor has; 0 where none says it."""
    for text in reversed(makes):
        views = [
            one
            for one in ast.walk(ast.parse(text.replace("·", "_")))
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr in ("view", "reshape")
        ]
        if views:
            return len(views[0].args)
    return 0
