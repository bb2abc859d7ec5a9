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


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The reading of an earlier save: its flags, and how the code that was read is built and called."""

    flags: tuple[str, ...]
    settled: bool  # whether words say what its mask means
    interface: object

    @property
    def asked(self) -> tuple[str, ...]:
        """The flags to ask for. What nothing settles stays open, and is said at every save."""
        return self.flags if self.settled else tuple(flag for flag in self.flags if not flag.startswith("mask="))


class Grader:
    """Grades the latest job and calls `done` from its own thread. The result of an older job is dropped."""

    def __init__(
        self,
        engine: PersistentEngine,
        done: Callable[[Done], None],
        *,
        seed: int = 0,
        given: tuple[str, ...] = (),
        reads: bool = True,
    ) -> None:
        self._engine, self._tell, self._seed = engine, done, seed
        self._given, self._reads = given, reads  # how the user wants code by other names read, and whether
        self._kept: dict[str, Kept] = {}  # by kata, for code by other names
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

    def begin_anew(self) -> None:
        """Forget how the user wanted code by other names read: that was for another file."""
        self._given, self._reads = (), True

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
        """The report, under the reading of the save before, as long as that holds; with a note where it changes.

        A file that cannot be graded in between, half typed, changes nothing. Where the code fails under the reading, and
        passes under another one, that is taken: the first may have been that of a mistake.
        """
        kept = self._kept.get(job.kata)
        holds = kept is not None and kept.interface == _interface(job.source.code, kept.flags)
        report = self._grade_with(job, kept.asked if kept is not None and holds else ())
        if holds and not report.passed:
            fresh = self._grade_with(job, ())
            report = fresh if fresh.passed or not report.was_tested else report
        if report.reading is None:
            if report.was_tested:  # it has the contract's own names now
                self._kept.pop(job.kata, None)
            return report
        flags, settled = tuple(report.reading["flags"]), bool(report.reading["settled"])
        self._kept[job.kata] = Kept(flags=flags, settled=settled, interface=_interface(job.source.code, flags))
        said = _changed(kept.flags, flags) if kept is not None else ""
        if not said:
            return report
        notes = [f"Your code is read in another way than before: {said}", *report.reading["notes"]]
        return replace(report, reading={**report.reading, "notes": notes})

    def _grade_with(self, job: Job, flags: tuple[str, ...]) -> Report:
        return self._engine.grade(
            job.kata,
            job.source.code,
            attempt=job.name,
            seed=self._seed,
            reads=self._reads,
            flags=(*flags, *self._given),
        )


def _interface(source: bytes, flags: tuple[str, ...]) -> object:
    """How what is read is built and called, and what it returns; None where it is not there."""
    from attn_kata.readings.source import methods, syntax

    names = dict(flag.split("=", 1) for flag in flags)
    source, entry = methods.taken(source, names.get("entry", ""))
    found = syntax.of_source(source).find(entry)
    return None if found is None else (found.build, found.call, found.returned)


def _changed(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """What of a reading is another than before, or ""."""
    names = {flag.partition("=")[0] for flag in after}
    gone = [flag.partition("=")[0] for flag in before if flag.partition("=")[0] not in names]
    return ", ".join([*(flag for flag in after if flag not in before), *(f"no {name}" for name in gone)])
