"""Grading from Python: `grade` once, `Grader` many times with one warm engine."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from attn_kata import catalog, files, local_imports, notebooks, sources
from attn_kata.api import session
from attn_kata.api.report import Report
from attn_kata.catalog import Kata
from attn_kata.engine.persistent import PersistentEngine
from attn_kata.errors import UsageError
from attn_kata.readings import fitting
from attn_kata.sources import Source

_GIVE = "Give a class or a function, path='FILE', or source='CODE'"


class Grader:
    """Grades attempts at one kata. The engine is kept, so that only the first grading waits for torch.

    The constructor starts the engine's process; leaving the `with` block, or `close`, ends it. What you give is never run in
    this process. `seed` draws other inputs, `timeout` is in seconds for a whole grading, and `properties` names those to
    test, with those that they need; without it, all. `read` and `strict` are as for `grade`.

    >>> import attn_kata
    >>> with attn_kata.Grader("softmax", properties=["output_shape"]) as grader:
    ...     report = grader("def softmax(x, dim): return x")
    >>> report.passed, report.exit_code
    (True, 0)
    """

    def __init__(
        self,
        kata: str,
        *,
        seed: int = 0,
        timeout: float = 60.0,
        properties: Sequence[str] = (),
        read: Sequence[str] = (),
        strict: bool = False,
    ) -> None:
        self._kata = find(kata)
        self._options = options(self._kata, seed=seed, timeout=timeout, properties=properties, read=read, strict=strict)
        refuse_during_interview()
        self._one_at_a_time = threading.Lock()
        self._engine = PersistentEngine()
        self._close = weakref.finalize(self, self._engine.close)  # also when nobody calls `close`

    def __call__(
        self, attempt: object = None, *, path: str | os.PathLike[str] | None = None, source: str | bytes | None = None
    ) -> Report:
        """Grade one attempt, given as for `grade`."""
        if not self._close.alive:
            raise UsageError(
                "This Grader was closed.", next_step=f"Make a new one: attn_kata.Grader('{self._kata.slug}')"
            )
        name, given, entry = _given(self._kata, attempt, path, source, reads=self._options["reads"])
        options = read_as(entry, self._options)
        with self._one_at_a_time:
            report = self._engine.grade(self._kata.slug, given.code, attempt=name, **options)
        return Report.of(given.located(report), given.code)

    def close(self) -> None:
        """End the engine. Nothing is left behind."""
        self._close()

    def __enter__(self) -> Grader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def grade(
    kata: str,
    attempt: object = None,
    *,
    path: str | os.PathLike[str] | None = None,
    source: str | bytes | None = None,
    seed: int = 0,
    timeout: float = 60.0,
    properties: Sequence[str] = (),
    read: Sequence[str] = (),
    strict: bool = False,
) -> Report:
    """Grade one attempt at `kata`: `path` is a Python file or a notebook, `source` is code, `attempt` a class or function.

    A class or function of this session is graded by its source, together with the imports, functions, classes and constants of
    the session that it uses. Code by other names is read as it is; `read` says how, as KEY=VALUE: read=["mask=hide"]. With
    `strict`, the names of the contract are asked for. The attempt runs in a process of its own, as with `attn-kata grade`;
    nothing is kept in the history. Raises an error that says what to do, for a kata that does not exist and for an attempt
    that cannot be read.

    >>> import attn_kata
    >>> report = attn_kata.grade("softmax", source="def softmax(x, dim): return x.exp() / x.exp().sum(dim)")
    >>> report.passed
    False
    """
    found = find(kata)
    _given(found, attempt, path, source, reads=not strict)  # what is wrong with it is said before anything starts
    with Grader(found.slug, seed=seed, timeout=timeout, properties=properties, read=read, strict=strict) as grader:
        return grader(attempt, path=path, source=source)


def find(kata: str) -> Kata:
    """The kata of that name. Raises UsageError with the nearest name."""
    if not isinstance(kata, str):
        raise UsageError(
            f"The first argument is the name of a kata, not '{kata!r:.60}'.", next_step="attn_kata.katas()"
        )
    try:
        return catalog.find(kata)
    except UsageError as problem:
        raise UsageError(problem.what, next_step="See them all: attn_kata.katas()") from None


def options(
    kata: Kata,
    *,
    seed: int,
    timeout: float,
    properties: Sequence[str],
    read: Sequence[str] = (),
    strict: bool = False,
) -> dict[str, Any]:
    """What an engine is asked beyond the source. Raises UsageError for a value that cannot be."""
    if not (isinstance(seed, int) and 0 <= seed < 2**63):
        raise UsageError(f"seed is a whole number from 0 to 2**63 - 1, not '{seed}'.")
    if not (isinstance(timeout, (int, float)) and math.isfinite(timeout) and timeout > 0):
        raise UsageError(f"timeout is a number of seconds above 0, not '{timeout}'.")
    names = (properties,) if isinstance(properties, str) else tuple(properties)
    for name in names:
        catalog.check_property(kata, name)
    flags = (read,) if isinstance(read, str) else tuple(read)
    if flags and strict:
        raise UsageError(
            "strict asks for the contract's names, so nothing is read.", next_step="Leave one of the two out"
        )
    fitting.check(kata.slug, kata.folder, flags, reads=bool(flags))
    return {"seed": seed, "timeout": float(timeout), "properties": names, "reads": not strict, "flags": flags}


def read_as(entry: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options for what was given: text for None, an object by the contract for "", else one by other names."""
    if entry:
        return {**options, "flags": (f"entry={entry}", *options["flags"])}
    return {**options, "reads": options["reads"] and (entry is None or bool(options["flags"]))}


def refuse_during_interview() -> None:
    """Raises UsageError while a mock interview runs: a grading shows findings of hidden tests."""
    from attn_kata.cli import mock_interview

    mock_interview.refuse_while_running("grade", "findings of hidden tests")


def _given(
    kata: Kata, attempt: object, path: str | os.PathLike[str] | None, source: str | bytes | None, *, reads: bool
) -> tuple[str, Source, str | None]:
    """The name of an attempt and its source, from the one of the three that was given; and what `read_as` needs of it."""
    if sum(given is not None for given in (attempt, path, source)) != 1:
        raise UsageError("Give one attempt.", next_step=_GIVE)
    if path is not None:
        file = Path(path)
        return files.printable(str(file)), notebooks.of_kata(local_imports.read(file), kata), None
    if isinstance(attempt, os.PathLike):
        raise UsageError(f"'{attempt}' is a path.", next_step=f"attn_kata.grade('{kata.slug}', path='{attempt}')")
    text = source if source is not None else attempt
    if isinstance(text, str) and "\n" not in text and text.endswith((".py", sources.SUFFIX)):
        raise UsageError(f"'{text}' looks like a path.", next_step=f"attn_kata.grade('{kata.slug}', path='{text}')")
    if isinstance(text, (str, bytes)):
        data = text.encode("utf-8", "replace") if isinstance(text, str) else text
        return "source", notebooks.of_kata(sources.of_bytes(data, "source"), kata), None
    if source is not None:
        raise UsageError(f"source is text, not '{type(source).__name__}'.", next_step=_GIVE)
    return session.of_object(attempt, kata, reads=reads)
