"""One grading, in the grader: load the attempt in its process, run the hidden tests, diagnose, and make the Report."""

from __future__ import annotations

import contextlib
import platform
import signal
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from attn_kata import __version__, catalog
from attn_kata.diagnosis import beyond
from attn_kata.diagnosis.diagnose import Diagnosed, diagnose
from attn_kata.diagnosis.pipeline import load
from attn_kata.grading import (
    anyway,
    foreign,
    foreign_conventions,
    foreign_verdict,
    hidden_tests,
    processors,
    runner,
    unread,
)
from attn_kata.grading.anyway import Anyway
from attn_kata.grading.connection import AttemptLauncher, Connection
from attn_kata.grading.hidden_tests import Case, HiddenTest
from attn_kata.grading.local import Local, load_namespace, local_handle
from attn_kata.grading.prefetch import Prefetch
from attn_kata.grading.reference_cache import ReferenceCache
from attn_kata.grading.runner import Found
from attn_kata.properties.failures import AttemptDied, AttemptRaised
from attn_kata.properties.handle import Handle, read_raised
from attn_kata.protocol import messages, wire
from attn_kata.protocol.messages import Job
from attn_kata.readings import advice
from attn_kata.report.model import Finding, Isolation, Report, ReportOutcome
from attn_kata.report.plain import one_line

STOPPED = "your file ends early with an exception, and what it defines before that is graded: {why}"
ONE_FILE = (
    "An attempt can import what is installed. `grade` and `watch` also read the files beside it; "
    "everything else takes one file"
)
MOST_OF_AN_EXCEPTION = 300  # characters of a note
DIAGNOSIS_SECONDS = 30.0  # far more than the bounded search needs: a hostile source may make looking at it slow
MAX_SOURCE_FOR_LINES = 64 << 10  # bytes; no lines are looked for in more: parsing a megabyte can take half a minute


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A kata that is loaded ahead of its gradings: hidden tests, reference and mistakes."""

    kata: catalog.Kata
    tests: list[HiddenTest]
    solution: Path
    mistakes: types.ModuleType | None
    answers: ReferenceCache
    prefetch: Prefetch

    @classmethod
    def of(cls, folder: Path, solution: Path) -> Loaded:
        """Load the kata in `folder`."""
        known = (folder / "mistakes.py").is_file()
        return cls(
            kata=catalog.load(folder),
            tests=hidden_tests.load(_tests_of(folder)),
            solution=solution,
            mistakes=load(folder) if known else None,
            answers=ReferenceCache(Local(load_namespace(solution))),
            prefetch=Prefetch(Local(load_namespace(solution))),
        )

    def prewarm(self, seed: int) -> None:
        """Grade the reference once, as if it were an attempt, because every first operation is slow."""

        def begin(case: Case | None) -> None:
            self.answers.begin(case)
            self.prefetch.begin(case)

        attempt, reference = (Handle(answers, self.kata.returns) for answers in (self.prefetch, self.answers))
        findings, failures = runner.run(self.tests, attempt, reference, seed=seed, begin=begin)
        if self.mistakes is not None:
            source = self.solution.read_bytes()
            diagnose(self.mistakes, attempt, reference, findings, failures, source)


def grade(
    job: Job,
    source: bytes,
    launcher: AttemptLauncher,
    loaded: Loaded | None = None,
    *,
    connection: type[Connection] = Connection,
    diagnosis_seconds: float = DIAGNOSIS_SECONDS,
) -> Report:
    """Grade `source` as the job says. `loaded` is the kata, if it is loaded already.

    Raises ConfinementFailed and TooWeak before the attempt is run. The engine ends the attempt process later, so that the
    report need not wait for that.
    """
    grading = _Grading(job, source, launcher, loaded, connection, diagnosis_seconds)
    try:
        return grading.run()
    finally:
        grading.attempt.close()


class _Grading:
    def __init__(
        self,
        job: Job,
        source: bytes,
        launcher: AttemptLauncher,
        loaded: Loaded | None,
        connection: type[Connection],
        diagnosis_seconds: float,
    ) -> None:
        self._diagnosis_seconds = diagnosis_seconds
        self._job, self._loaded = job, loaded
        self._deadline = time.monotonic() + job.timeout
        self._folder = Path(job.katas) / job.slug
        self._solution = Path(job.solutions) / f"{job.slug}.py"
        kata = loaded.kata if loaded is not None else catalog.load(self._folder)
        self._returns = kata.returns
        self._to_read = foreign.to_be_read(source, self._folder, self._solution, flags=job.flags) if job.reads else None
        self._source = source if self._to_read is None else self._to_read.text
        self._read: foreign.Read | None = None
        request = messages.Load(
            filename=Path(job.attempt).name or "attempt.py",
            wanted=() if self._to_read else kata.entries,
            definitions=self._to_read is not None,
            seed=job.seed,
            tensors=(wire.source_tensor(self._source),),
        )
        self.attempt = connection(
            launcher,
            request,
            call_seconds=min(job.call_seconds, job.timeout),
            deadline=self._deadline,
            least_tier=job.least_tier,
        )
        self._seconds = {"properties": 0.0, "diagnosis": 0.0}
        self._stopped_by: str | None = None

    def run(self) -> Report:
        try:
            loaded = self.attempt.start()
        except AttemptDied as death:
            return self._ungraded(f"while it was imported: {death.reason}")
        if loaded.status != wire.OK:
            return self._ungraded(_why_not_loaded(loaded))
        self._stopped_by = _why_stopped(loaded)
        folder = self._folder
        started = time.perf_counter()
        if self._to_read is not None:
            try:
                read = self._find_reading(self._to_read)
            except AttemptDied as death:
                return self._ungraded(f"while it was read: {death.reason}. {advice.on(death.reason)}")
            if isinstance(read, str):
                return self._not_read(self._to_read, read)
            self._read = read
            self._seconds["reading"] = time.perf_counter() - started
            started = time.perf_counter()
            handle, reference = read.attempt, read.reference
        else:
            handle = Handle(self.attempt, self._returns)
            if self._loaded is None:
                reference = local_handle(self._solution, self._returns)
            else:
                reference = Handle(self._loaded.answers, self._returns)
        findings, failures = self._run_hidden_tests(handle, reference)
        self._seconds["properties"] = time.perf_counter() - started
        if self._read is not None:
            self._read = foreign_conventions.settled(self._read, findings, failures)
            findings = [_left_out(finding, self._read.left_out) for finding in findings]
            failures = {name: failure for name, failure in failures.items() if name not in self._read.left_out}
            findings, failures = foreign_conventions.with_more(self._read, findings, failures)
        core = [finding for finding in findings if finding.tier == "core"]
        left_out = self._read.left_out if self._read is not None else {}
        holds = all(
            finding.outcome == "passed" or (finding.property in left_out and finding.outcome != "failed")
            for finding in core
        )
        if holds and self._read is not None and self._read.chosen.beside:
            findings = foreign_conventions.with_beside(self._read, findings)
            told = anyway.of_beside(self._read.chosen.beside, self._source) if self._job.diagnose else []
            notes = self._read.source.wrong_anyway(self._read.chosen.reading.entry).notes
            diagnosed = Diagnosed(diagnoses=told, notes=notes, reproduced=False)
            return self._report("failed", findings=findings, diagnosed=diagnosed)
        outcome: ReportOutcome = "passed" if holds else "failed"
        not_written = outcome == "failed" and _nothing_written(findings)
        diagnosed = Diagnosed()
        known = (folder / "mistakes.py").is_file()  # a kata that is still being written may have none
        # An attempt that never answered would hang or die at every probe too, until the deadline.
        answers = any(finding.outcome in ("passed", "failed") for finding in findings)
        if outcome == "failed" and answers and not not_written and known and self._job.diagnose:
            started = time.perf_counter()
            processors.stay_on(self._job.processor)  # from here on the grader and the attempt take turns
            try:
                left = max(1.0, self._deadline - time.monotonic())
                with _time_limit(min(self._diagnosis_seconds, left)):
                    code = self._source if self._read is None else self._read.code
                    diagnosed = diagnose(
                        self._read.mistakes
                        if self._read is not None
                        else (self._loaded and self._loaded.mistakes) or load(folder),
                        handle,
                        reference,
                        findings,
                        failures,
                        code if len(code) <= MAX_SOURCE_FOR_LINES else b"",
                    )
                    if self._read is not None:
                        self._read = self._read.without_meaning_of_lost_mask(diagnosed)
                        diagnosed = self._read.in_their_names(diagnosed)
            except _DiagnosisTimeout:
                diagnosed = Diagnosed(notes=["the diagnosis took too long and was left out"])
            except Exception as error:  # the verdict is valid without a diagnosis
                diagnosed = Diagnosed(notes=[f"the diagnosis itself failed, please report it: {error!r}"])
            self._seconds["diagnosis"] = time.perf_counter() - started
        elif outcome == "passed" and self._read is None and len(self._source) <= MAX_SOURCE_FOR_LINES:
            diagnosed = Diagnosed(notes=beyond.notes(failures, self._source))
        elif outcome == "passed" and self._read is not None:  # of what the reading does not ask
            diagnosed = Diagnosed(notes=self._read.source.wrong_anyway(self._read.chosen.reading.entry).notes)
        if self._read is not None and outcome == "failed" and not not_written and self._job.diagnose:
            doubt = foreign_verdict.no_verdict(self._read, findings, failures, diagnosed)
            if doubt is not None:
                return self._not_read(self._read.source, doubt, self._read.chosen.reading.entry)
            if not diagnosed.diagnoses:  # a line or a call may still say it
                seen = self._wrong_anyway(self._read.source, self._read.chosen.reading.entry)
                diagnosed = _with(seen, diagnosed, self._source)
        return self._report(outcome, findings=findings, diagnosed=diagnosed, not_written=not_written)

    def _not_read(self, source: foreign.Source, because: str, entry: str = "") -> Report:
        """The report of code without a reading: failed where it is wrong however it is read, and else ungraded."""
        because = source.in_its_names(because)
        seen = self._wrong_anyway(source, entry)
        if not seen.mistakes:
            return self._ungraded(because, notes=seen.notes)
        return self._report("failed", diagnosed=_with(seen, Diagnosed(), self._source), because=because)

    def _wrong_anyway(self, source: foreign.Source, entry: str) -> Anyway:
        mistakes = None if self._loaded is None else self._loaded.mistakes
        return foreign.wrong_anyway(source, self.attempt, entry, mistakes)

    def _find_reading(self, source: foreign.Source) -> foreign.Read | str:
        """The reading of code by other names, or why there is none. Raises AttemptDied."""
        return foreign.read(
            source,
            self.attempt,
            tests=None if self._loaded is None else self._loaded.tests,
            mistakes=None if self._loaded is None else self._loaded.mistakes,
        )

    def _run_hidden_tests(self, attempt: Handle, reference: Handle) -> Found:
        if self._read is not None:
            tests = self._read.tests
        else:
            tests = hidden_tests.load(_tests_of(self._folder)) if self._loaded is None else self._loaded.tests
        return runner.run(
            tests,
            attempt,
            reference,
            seed=self._job.seed,
            only=self._job.properties,
            deadline=self._deadline,
            deaths=lambda: self.attempt.deaths,
            begin=self._begin,
            left_out=self._read.left_out if self._read is not None else {},
        )

    def _begin(self, case: Case | None) -> None:
        """A case begins: tell the reference cache, and prefetch the case's requests."""
        if self._loaded is not None and self._read is None:
            self._loaded.answers.begin(case)
            self.attempt.prefetch(self._loaded.prefetch.requests_from(case))

    def _ungraded(self, because: str, *, notes: list[str] | None = None) -> Report:
        return self._report("ungraded", because=because, diagnosed=Diagnosed(notes=notes or []))

    def _report(
        self,
        outcome: ReportOutcome,
        *,
        findings: list[Finding] | None = None,
        diagnosed: Diagnosed | None = None,
        because: str | None = None,
        not_written: bool = False,
    ) -> Report:
        self.attempt.collect()
        tier, landlock, seccomp, *notes = self.attempt.force or ("0", "0", "0")
        diagnosed = diagnosed or Diagnosed()
        return Report(
            kata=self._job.slug,
            attempt=self._job.attempt,
            outcome=outcome,
            seed=self._job.seed,
            findings=findings or [],
            diagnosis=diagnosed.diagnoses,
            ungraded_because=because,
            attempt_output=bytes(self.attempt.output).decode("utf-8", "replace"),
            isolation=Isolation(tier=int(tier), landlock=int(landlock), seccomp=seccomp == "1", notes=list(notes)),
            seconds=self._seconds,
            versions={"attn_kata": __version__, "torch": str(torch.__version__), "python": platform.python_version()},
            pictures=diagnosed.pictures,
            not_written=not_written,
            part=bool(self._job.properties),
            explained=diagnosed.explained,
            notes=[STOPPED.format(why=self._stopped_by), *diagnosed.notes] if self._stopped_by else diagnosed.notes,
            stopped_by=self._stopped_by,
            reproduced=diagnosed.reproduced,
            unexplained=diagnosed.unexplained,
            reading=self._read.described if self._read is not None else None,
        )


def _with(seen: Anyway, diagnosed: Diagnosed, source: bytes) -> Diagnosed:
    """The diagnosis with what is wrong however the code is read."""
    if not seen.mistakes:
        return replace(diagnosed, notes=[*diagnosed.notes, *seen.notes])
    found = anyway.named(seen.mistakes, source)
    notes = [*diagnosed.notes, *seen.without_mistakes()]
    return replace(diagnosed, diagnoses=[found], notes=notes, explained=False, reproduced=False)


def _tests_of(folder: Path) -> Path:
    return folder / f"test_{folder.name}.py"


class _DiagnosisTimeout(BaseException):
    """The diagnosis took too long. Not an Exception, so that no `except Exception` hides it."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _DiagnosisTimeout after this many seconds: a source or an output may be made so that it is slow to look at.

    Windows has no timer signals. There only the face's deadline applies.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def on_alarm(*_: object) -> None:
        raise _DiagnosisTimeout

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _left_out(finding: Finding, left_out: dict[str, str]) -> Finding:
    """The finding, skipped where its property makes no sense under the reading."""
    if finding.property not in left_out or finding.outcome == "passed":
        return finding
    return replace(
        finding, outcome="skipped", message=left_out[finding.property], look_at=None, example=None, case=None, line=None
    )


def _nothing_written(findings: list[Finding]) -> bool:
    """Whether every property that was tested met the stub's NotImplementedError."""
    tried = [finding for finding in findings if finding.outcome != "skipped"]
    return bool(tried) and all((finding.message or "").startswith("not written yet") for finding in tried)


def _why_not_loaded(reply: wire.Reply) -> str:
    if reply.status == wire.SYNTAX:
        message, line, text = (*reply.texts, "", "", "")[:3]
        at = f" in line {line}: {text.strip()}" if line not in ("", "0") else ""
        return f"it is not Python ({message}){at}"
    if reply.status == wire.NO_ENTRY:
        return unread.say_missing(reply.texts[0].split(), reply.texts[1:])
    raised = read_raised(reply.texts)
    if raised.types[0] == "ModuleNotFoundError" or raised.text.startswith("attempted relative import"):
        return f"it imports something that is not here: {AttemptRaised(raised).message}. {ONE_FILE}"
    if raised.types[0] == "SystemExit":
        return "it ends the process while it is imported (sys.exit)"
    return f"it raises while it is imported: {AttemptRaised(raised).message}"


def _why_stopped(reply: wire.Reply) -> str | None:
    """The exception that ended the source after its definitions, with its line, or None."""
    if not reply.texts:
        return None
    raised = read_raised(reply.texts)
    line = next((f"line {line}, " for line, function in raised.frames if function == "<module>"), "")
    return one_line(f"{line}{raised.types[0]}: {raised.text}", most=MOST_OF_AN_EXCEPTION)
