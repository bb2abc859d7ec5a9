"""How far a run is: a bar with the rate and what is left on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attn_kata.classroom.run import Progress
from attn_kata.report.plain import one_line

LINE_SECONDS = 5.0  # between two lines in a pipe


@contextmanager
def shown(warn: Callable[[str], None], *, bar: bool) -> Iterator[Callable[[Progress], None]]:
    """A function that is told of every result; `bar` says that a person watches a terminal."""
    if not bar:
        yield _Lines(warn).tell
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[name]}", markup=False),
    )
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as shown_bar:
        task = shown_bar.add_task("", total=None, rate="", name="starting …")
        rate = _Rate()

        def tell(progress: Progress) -> None:
            shown_bar.update(
                task,
                total=progress.total,
                completed=progress.done,
                rate=rate.after(progress.done),
                name=one_line(progress.name, most=30),
            )

        yield tell


class _Rate:
    """Seconds for each result, measured from the first one on: it waited for torch."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def after(self, done: int) -> str:
        now = time.monotonic()
        if self._first is None:
            self._first = now, done
        began, before = self._first
        return f"{(now - began) / (done - before):.2f} s each" if done > before else ""


class _Lines:
    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn, self._rate = warn, _Rate()
        self._last = 0.0

    def tell(self, progress: Progress) -> None:
        now, rate = time.monotonic(), self._rate.after(progress.done)
        if progress.done < progress.total and now - self._last < LINE_SECONDS:
            return
        self._last = now
        said = f"{progress.done} of {progress.total} graded{f', {rate}' if rate else ''}"
        self._warn(f"{said}. Last: {progress.name}, {progress.verdict}.")
