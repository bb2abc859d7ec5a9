"""One run: grades every submission that has no result yet, and writes each result down as it comes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from attn_kata.classroom.setting import Setting
from attn_kata.classroom.store import Listed, Store
from attn_kata.classroom.submissions import Submission
from attn_kata.classroom.summary import word
from attn_kata.errors import UsageError
from attn_kata.report.model import Report
from attn_kata.report.plain import one_line
from attn_kata.sources import Source

LOOK_SECONDS = 1.0


class Map(Protocol):
    """What grades: `LocalMap` or `ClusterMap`."""

    def width(self) -> int:
        """How many submissions to hand out at a time."""

    def submit(self, code: bytes, name: str) -> Future[dict[str, Any]]:
        """Begin to grade."""

    def failed(self, problem: BaseException) -> UsageError | None:
        """The error that ends the run, if this problem is not that of one submission."""

    def lost(self) -> UsageError | None:
        """The error that ends the run where no result can come any more. Asked every LOOK_SECONDS without a result."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """After a result: how many of this run's submissions have one, and how many there are. `name` is the student's."""

    done: int
    total: int
    name: str
    verdict: str


def listed(submission: Submission, setting: Setting) -> Listed:
    """The submission as it is written down. One that cannot be read gets a problem instead of a key."""
    problem, sha256 = submission.problem, ""
    if not problem:
        try:
            sha256 = hashlib.sha256(submission.read().code).hexdigest()
        except UsageError as unreadable:
            problem = unreadable.what
    return Listed(
        student=submission.key,
        name=submission.student,
        file=submission.file,
        sha256=sha256,
        key="" if problem else setting.key(sha256),
        problem=problem,
    )


def run(
    submissions: list[tuple[Submission, Listed]],
    store: Store,
    begin: Callable[[], AbstractContextManager[Map]],
    tell: Callable[[Progress], None],
) -> int:
    """Grade what has no result yet; return how many that were. `begin` is called only if there is something to grade.

    Raises UsageError where nothing more can be graded or written. Then every result that came is kept.
    """
    done = store.done()
    gradable = [(submission, each) for submission, each in submissions if each.key]
    todo = [pair for pair in gradable if (pair[1].student, pair[1].key) not in done]
    if not todo:
        return 0
    finished = len(gradable) - len(todo)
    with begin() as grading_map:
        for each, source, future in _in_turn(grading_map, iter(todo)):
            report, fault = _outcome(grading_map, source, future)
            store.keep(each.student, each.key, source.code, None if report is None else report.to_dict(), fault)
            finished += 1
            tell(Progress(done=finished, total=len(gradable), name=each.name, verdict=word(report).lower()))
    return len(todo)


def _in_turn(
    grading_map: Map, todo: Iterator[tuple[Submission, Listed]]
) -> Iterator[tuple[Listed, Source, Future[dict[str, Any]]]]:
    """Every result as it comes. The next submission begins when the caller asks for the next result."""
    running: dict[Future[dict[str, Any]], tuple[Listed, Source]] = {}
    while True:
        while len(running) < grading_map.width() and (following := next(todo, None)) is not None:
            submission, each = following
            try:
                source = submission.read()
            except UsageError as gone:  # it could be read a moment ago
                future: Future[dict[str, Any]] = Future()
                future.set_exception(gone)
                yield each, Source(code=b""), future
                continue
            running[grading_map.submit(source.code, each.file)] = (each, source)
        if not running:
            return
        finished: set[Future[dict[str, Any]]] = set()
        while not finished:
            finished, _ = wait(running, LOOK_SECONDS, return_when=FIRST_COMPLETED)
            if not finished and (ends := grading_map.lost()) is not None:
                raise ends
        future = finished.pop()
        yield (*running.pop(future), future)


def _outcome(grading_map: Map, source: Source, future: Future[dict[str, Any]]) -> tuple[Report | None, str]:
    """The report, or why there is none. Raises UsageError for what concerns every submission."""
    try:
        report = Report.from_dict(future.result())
    except (Exception, CancelledError) as problem:
        ends = grading_map.failed(problem)
        if ends is not None:
            raise ends from problem
        said = problem.what if isinstance(problem, UsageError) else f"attn-kata itself failed: {problem}"
        return None, one_line(said, most=300)
    return source.located(report), ""
