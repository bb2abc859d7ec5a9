"""Runs the definitions of a source that was not written for a kata, each by itself.

Such a source may import what is not installed, read files, or train a model at its top level. Its imports, functions,
classes and assignments run; an exception ends one statement only, and so does the time that one may take. Loops and bare
calls do not run. What could not be imported, or set by an assignment that raised, is there by name, so that a class with such
a base or such a default, or a function with such an annotation, is defined.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import signal
from collections.abc import Iterator
from typing import Any

from attn_kata.attempt import missing

_RUN = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.Try)
_SECONDS = 2.0  # for `losses = train(model)`; an import may take longer
_LAZY = __future__.annotations.compiler_flag  # an annotation may name what could not be imported


def run(source: bytes, filename: str, namespace: dict[str, Any]) -> None:
    """Run every definition of `source` that can run. Raises MemoryError; other exceptions of a statement are dropped."""
    missing.Missing.open = True
    body = ast.parse(source).body
    if not any(isinstance(one, (ast.Import, ast.ImportFrom)) for statement in body for one in ast.walk(statement)):
        missing.fill_usual(namespace)  # it was copied without its imports
    _run(body, filename, namespace)
    missing.close(namespace)


def _run(body: list[ast.stmt], filename: str, namespace: dict[str, Any]) -> None:
    for statement in body:
        if isinstance(statement, ast.Try) and _imports_torch(statement):
            _run(statement.body, filename, namespace)
        elif isinstance(statement, ast.If):
            _run(_branch(statement, filename, namespace), filename, namespace)
        elif isinstance(statement, _RUN):
            _run_whole(statement, filename, namespace)


def _imports_torch(statement: ast.Try) -> bool:
    """Whether it does nothing but import, torch among others: its handler would do without torch for lack of the others."""
    imports = [one for one in statement.body if isinstance(one, (ast.Import, ast.ImportFrom))]
    names = [alias.name for one in imports if isinstance(one, ast.Import) for alias in one.names]
    return len(imports) == len(statement.body) and "torch" in names


def _branch(statement: ast.If, filename: str, namespace: dict[str, Any]) -> list[ast.stmt]:
    """The branch that its condition chooses, as `if TYPE_CHECKING` or a check of a version; none where that raises."""
    with contextlib.suppress(Exception):
        condition = compile(ast.Expression(statement.test), filename, "eval", dont_inherit=True)
        return statement.body if eval(condition, namespace) else statement.orelse
    return []


def _run_whole(statement: ast.stmt, filename: str, namespace: dict[str, Any]) -> None:
    whole = ast.Module(body=[statement], type_ignores=[])
    try:
        with contextlib.nullcontext() if isinstance(statement, (ast.Import, ast.ImportFrom)) else _time_limit():
            exec(compile(whole, filename, "exec", flags=_LAZY, dont_inherit=True), namespace)
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            missing.fill(statement, namespace)
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            namespace.setdefault(statement.name, missing.Undefined(error))
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):  # a config that is read from a file, say
            for name in _names(statement):
                namespace.setdefault(name, missing.Missing(name))


def _names(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    """The names that an assignment sets."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [
        one.id
        for target in targets
        for one in ast.walk(target)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    ]


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Raise TimeoutError in what takes longer. Windows has no timer signals: there a call's own limit is all there is."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def on_alarm(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
