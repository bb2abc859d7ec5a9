"""Grades one job after the other in a separate thread. A new job cancels the one that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attn_kata.sources import Source

if TYPE_CHECKING:
    from attn_kata.engine.persistent import PersistentEngine
    from attn_kata.report.model import Report


@dataclass(frozen=True, kw_only=True)
class Job:
    """One version of one attempt."""

    kata: str
    name: str
    source: Source


@dataclass(frozen=True, kw_only=True)
class Graded:
    """A job with its report."""

    job: Job
    report: Report


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A job that could not be graded because of a bug in attn-kata."""

    job: Job
    problem: Exception


Done = Graded | Fault


class Grader:
    """Grades the latest job and calls `done` from its own thread. The result of an older job is dropped."""

    def __init__(self, engine: PersistentEngine, done: Callable[[Done], None], *, seed: int = 0) -> None:
        self._engine, self._tell, self._seed = engine, done, seed
        self._flags: tuple[str, ...] = ()  # of the last reading, for code by other names
        self._changed = threading.Condition()
        self._wanted: Job | None = None
        self._running: Job | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="grader", daemon=True)
        self._thread.start()

    def grade(self, job: Job) -> None:
        """Grade this job next, and cancel the running one."""
        with self._changed:
            self._wanted = job
            self._changed.notify()
        self.drop_stale()

    def drop_stale(self) -> None:
        """Cancel a running grading whose result is no longer needed. Cheap, and called repeatedly: one may come too early."""
        with self._changed:
            stale = self._running is not None and (self._wanted is not None or self._stopped)
        if stale:
            self._engine.cancel()

    def stop(self) -> None:
        """Stop grading."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self.drop_stale()
        self._thread.join(2)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._running = None
                while self._wanted is None and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                job, self._wanted = self._wanted, None
                self._running = job
            assert job is not None
            done = self._grade(job)
            with self._changed:
                stale = self._wanted is not None or self._stopped
            if done is not None and not stale:
                self._tell(done)

    def _grade(self, job: Job) -> Done | None:
        from attn_kata.engine.client import GradingCancelled

        try:
            # Nobody hides from themselves what they call; and the eyes are already on the screen.
            report = self._read_as_before(job)
        except GradingCancelled:
            return None
        except Exception as problem:  # our bug must not stop the user's work
            return Fault(job=job, problem=problem)
        return Graded(job=job, report=job.source.located(report))

    def _read_as_before(self, job: Job) -> Report:
        """The report, under the reading of the save before; under a new one, with a note, where the code cannot be read so."""
        kept = self._flags
        report = self._grade_with(job, kept)
        if kept and report.outcome == "ungraded":
            report = self._grade_with(job, ())
        self._flags = tuple(report.reading["flags"]) if report.reading is not None else ()
        if kept and self._flags and kept != self._flags:
            changed = ", ".join(flag for flag in self._flags if flag not in kept)
            report = replace(report, notes=[*report.notes, f"your code is read in another way than before: {changed}"])
        return report

    def _grade_with(self, job: Job, flags: tuple[str, ...]) -> Report:
        return self._engine.grade(job.kata, job.source.code, attempt=job.name, seed=self._seed, reads=True, flags=flags)
