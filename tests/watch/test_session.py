"""What a `watch` knows: flips, one grading at a time, the last save wins."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.engine.client import GradingCancelled
from attn_kata.report.model import Finding, Isolation, Report
from attn_kata.sources import Source
from attn_kata.watch.files import Missing, Saved
from attn_kata.watch.grading import Fault, Graded, Grader, Job
from attn_kata.watch.session import Flips, WatchSession, flips


def report(**outcomes: str) -> Report:
    findings = [
        Finding(
            property=name,
            claim="…",
            tier="core",
            outcome=outcome,
            message=None,
            look_at=None,
            case=None,
            needs=[],
            example=None,
            seconds=0.0,
        )  # type: ignore[arg-type]
        for name, outcome in outcomes.items()
    ]
    passed = bool(findings) and all(finding.outcome == "passed" for finding in findings)
    return Report(
        kata="sdpa",
        attempt="sdpa.py",
        outcome="passed" if passed else "failed" if findings else "ungraded",
        seed=0,
        findings=findings,
        diagnosis=[],
        ungraded_because=None if findings else "it is not Python",
        attempt_output="",
        isolation=Isolation(tier=1, landlock=7, seccomp=True, notes=[]),
        seconds={"total": 0.1},
        versions={},
    )


@pytest.fixture
def session() -> WatchSession:
    return WatchSession(kata=catalog.find("sdpa"), path=Path("/nowhere/sdpa.py"), name="sdpa.py", started=0.0)


def test_flips_are_what_holds_now_and_what_fails_now():
    before = report(shape="passed", values="failed", mask="skipped", dtype="passed", scale="failed")
    after = report(shape="failed", values="passed", mask="failed", dtype="passed", scale="errored")

    assert flips(before, after) == Flips(now_hold=["values"], now_fail=["shape", "mask"])
    assert flips(None, after) == Flips()
    assert flips(after, after) == Flips()


def test_an_ungraded_version_between_two_does_not_hide_what_flipped(session):
    for source, graded in ((b"1", report(values="failed")), (b"2", report()), (b"3", report(values="passed"))):
        job = session.job_for(Saved(source=Source(code=source)))
        session.take(Graded(job=job, report=graded))

    assert session.flips == Flips(now_hold=["values"])
    assert session.passed


def test_only_what_the_file_holds_is_taken(session):
    old = session.job_for(Saved(source=Source(code=b"old")))
    new = session.job_for(Saved(source=Source(code=b"new")))

    assert session.job_for(Saved(source=Source(code=b"new"))) is None, "saved twice"
    assert session.take(Graded(job=old, report=report(values="passed"))) is None
    assert session.report is None
    assert session.take(Graded(job=new, report=report(values="failed"))) is not None
    assert session.job_for(Saved(source=Source(code=b"new"))) is None


def test_a_missing_file_is_said_until_it_is_back_and_a_fault_until_the_next_grading(session):
    assert session.job_for(Missing(why="gone")) is None
    assert session.missing == "gone"
    job = session.job_for(Saved(source=Source(code=b"back")))
    session.take(Fault(job=job, problem=RuntimeError("ours")))

    assert session.missing is None
    assert str(session.fault) == "ours"
    session.take(Graded(job=session.again(), report=report(values="passed")))
    assert session.fault is None


class SlowEngine:
    """Grades until it is told to stop, or let go."""

    def __init__(self) -> None:
        self.begun: queue.Queue = queue.Queue()
        self.let_go = threading.Event()
        self.cancelled = threading.Event()
        self.finished: list[bytes] = []

    def grade(self, slug, source, **asked):
        self.cancelled.clear()
        self.begun.put(source)
        while not self.let_go.wait(0.005):
            if self.cancelled.is_set():
                raise GradingCancelled
        self.finished.append(source)
        return dataclasses.replace(report(values="passed"), attempt=source.decode())

    def cancel(self):
        self.cancelled.set()


def test_the_last_save_wins_and_what_runs_is_dropped():
    engine, told = SlowEngine(), queue.Queue()
    grader = Grader(engine, told.put)
    jobs = [Job(kata="sdpa", name="sdpa.py", source=Source(code=source)) for source in (b"1", b"2", b"3")]
    grader.grade(jobs[0])
    assert engine.begun.get(timeout=5) == b"1"
    grader.grade(jobs[1])
    grader.grade(jobs[2])
    last = engine.begun.get(timeout=5)
    while last != b"3":
        last = engine.begun.get(timeout=5)
    engine.let_go.set()
    done = told.get(timeout=5)
    grader.stop()

    assert done.job is jobs[2]
    assert engine.finished == [b"3"]
    assert told.empty()


def test_stopping_drops_what_runs_and_ends_the_thread():
    engine = SlowEngine()
    grader = Grader(engine, lambda done: None)
    grader.grade(Job(kata="sdpa", name="sdpa.py", source=Source(code=b"1")))
    engine.begun.get(timeout=5)
    begun = time.monotonic()
    grader.stop()

    assert time.monotonic() - begun < 1.5
    assert engine.finished == []
