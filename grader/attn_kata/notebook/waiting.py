"""One grading while the kernel waits: a line that says what happens, and an end to it when the kernel is interrupted."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.display import DisplayHandle, display

from attn_kata.engine.client import EngineFault

if TYPE_CHECKING:
    from attn_kata.api import Report
    from attn_kata.engine.persistent import PersistentEngine

QUIET_SECONDS = 0.4  # a grading that is quicker shows its report and nothing before it
TICK_SECONDS = 0.5


class Stopped(KeyboardInterrupt):
    """The kernel was interrupted while an attempt was graded."""

    def _render_traceback_(self) -> list[str]:
        return ["The grading was stopped. To grade, run the cell again."]


class _Line:
    """A line that changes while one waits, and is replaced by the report."""

    def __init__(self, said: str) -> None:
        self._said = said
        self._begun = time.monotonic()

    def __repr__(self) -> str:
        return f"{self._said} {time.monotonic() - self._begun:.0f} s"

    def _repr_html_(self) -> str:
        return f'<p class="attn-kata-waiting" role="status">{self!r}</p>'


def shown(grade: Callable[[], Report], engine: PersistentEngine, *, said: str, in_place: bool) -> Report:
    """Grade, and show the report. `said` is shown first where it takes a while.

    `in_place`: the front end can replace an output, as notebooks can and terminals cannot. After an interrupt the engine
    is ended, with all its children, and Stopped is raised.
    """
    outcome: list[Report | BaseException] = []

    def work() -> None:
        try:
            outcome.append(grade())
        except BaseException as problem:
            outcome.append(problem)

    worker = threading.Thread(target=work, name="attn-kata", daemon=True)
    handle: DisplayHandle | None = None
    line = _Line(said)
    try:
        worker.start()
        worker.join(QUIET_SECONDS)
        if worker.is_alive():
            handle = _begin(line, in_place)
        while worker.is_alive():
            worker.join(TICK_SECONDS)
            if handle is not None and worker.is_alive():
                handle.update(line)
    except KeyboardInterrupt:
        engine.restart()
        worker.join(5)  # it ends with the engine; after it, another grading may start
        if handle is not None:
            handle.update(_Stop())
        raise Stopped from None
    made = outcome[0]
    if isinstance(made, BaseException):
        if handle is not None:
            handle.update(_Stop())
        raise made
    if handle is not None:
        handle.update(made)
    else:
        display(made)
    return made


class _Stop:
    """What is left of a waiting line when there is no report."""

    def __repr__(self) -> str:
        return "Not graded."


def _begin(line: _Line, in_place: bool) -> Any:
    if in_place:
        return display(line, display_id=True)
    print(line._said, file=sys.stderr)
    return None


class Fault(Exception):
    """A bug of attn-kata, said in one sentence."""

    def __init__(self, fault: EngineFault) -> None:
        super().__init__(str(fault))

    def _render_traceback_(self) -> list[str]:
        return [f"This is a bug in attn-kata, not in your code: {self}", "Please report it."]
