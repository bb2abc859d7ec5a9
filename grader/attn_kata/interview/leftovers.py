"""What a reviewer would ask to take out: debug prints, commented-out code, names of one letter everywhere.

`quality` runs this file in a process of its own, because a source can exhaust a parser. It imports nothing of attn-kata.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

# Letters that are names in the field: sizes, and what everybody calls queries, keys, values, inputs and counters.
_FIELD = frozenset("qkvxyBHTDENCGijnhdtbe_")
_MOST_SHORT, _LEAST_NAMES = 0.6, 4
_SAID = re.compile(r"[\w ,]+ +\(|\w+: ")  # `query (B, Tq, D)`, `shape: (B, T)`
_STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.Return, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom),
    *(ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With),
)


def findings(source: str) -> Iterator[tuple[int, str]]:
    """(line, what it is), in no order. Raises SyntaxError for what is no Python."""
    tree = ast.parse(source)
    yield from _prints(tree)
    yield from _short_names(tree)
    yield from _commented_out(source)


def _prints(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Calls of print and breakpoint, but not under `if __name__ == "__main__"`."""
    for node in tree.body:
        if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
            continue
        for call in ast.walk(node):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id in ("print", "breakpoint")
            ):
                yield call.lineno, f"'{call.func.id}' is left in"


def _short_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """One finding if most names that the code makes up have one letter, and not one that the field uses."""
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    names = {node.id for node in made}
    short = sorted(name for name in names if len(name) == 1 and name not in _FIELD)
    if len(names) >= _LEAST_NAMES and len(short) > _MOST_SHORT * len(names):
        first = min(node.lineno for node in made if node.id in short)
        yield first, f"most names have one letter: {', '.join(short[:6])}"


def _commented_out(source: str) -> Iterator[tuple[int, str]]:
    told = 0  # the last line of a task in comments, as a grow round writes it
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or not token.line.strip().startswith("#"):
            continue
        line, text = token.start[0], token.string.lstrip("#").strip()
        if text.startswith("---- Part ") or line == told + 1:
            told = line
        elif _is_code(text):
            yield line, f"commented-out code: {text[:60]}"


def _is_code(text: str) -> bool:
    """Whether a comment is a statement: an assignment, a call, a return. Words and shapes are not."""
    if _SAID.match(text):
        return False
    try:
        body = ast.parse(f"{text}\n    pass" if text.endswith(":") else text).body
    except (SyntaxError, ValueError):
        return False
    if not body:
        return False
    one = body[0]
    if isinstance(one, ast.Expr):
        return isinstance(one.value, ast.Call)
    return isinstance(one, _STATEMENTS)
