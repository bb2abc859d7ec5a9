"""One grading, in the grader child: load the attempt remotely, run the hidden tests, diagnose, and make the Report."""

from __future__ import annotations

import contextlib
import platform
import signal
import time
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .. import __version__, catalog
from ..diagnosis.diagnose import Diagnosed, diagnose
from ..diagnosis.pipeline import load
from ..properties.failures import AttemptRaised
from ..properties.foreseen import Noting
from ..properties.handle import Handle, local_handle, read_raised
from ..properties.local import Local, load_namespace
from ..properties.remembered import Remembering
from ..properties.runner import Case, Found, HiddenTests, with_hidden_tests
from ..report.model import Finding, Isolation, Report, ReportOutcome
from . import system, unaided, wire
from .line import AttemptDied
from .remote import Attempt, Supply

DIAGNOSIS_SECONDS = 5.0
UNAIDED_SECONDS = 10.0
MOST_READ = 64 << 10  # bytes of a source that is looked at for lines: a megabyte of it takes a parser half a minute


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A kata that was loaded before it is asked for: its hidden tests, its reference and its mistakes."""

    kata: catalog.Kata
    tests: HiddenTests
    solution: Path
    mistakes: types.ModuleType | None
    answers: Remembering
    foreseen: Noting

    @classmethod
    def of(cls, folder: Path, solution: Path, tests: HiddenTests) -> Loaded:
        """The kata in `folder`, whose hidden tests are collected already."""
        known = (folder / "mistakes.py").is_file()
        return cls(
            kata=catalog.load(folder), tests=tests, solution=solution, mistakes=load(folder) if known else None,
            answers=Remembering(Local(load_namespace(solution))), foreseen=Noting(Local(load_namespace(solution))),
        )

    def warm(self, *, seconds: float) -> None:
        """Do once what a grading does, with the reference for an attempt: what is slow the first time is slow here."""

        def begin(case: Case | None) -> None:
            self.answers.begin(case)
            self.foreseen.begin(case)

        attempt, reference = Handle(self.foreseen), Handle(self.answers)
        findings, failures = self.tests.run(attempt, reference, seed=0, begin=begin)
        if self.mistakes is not None:
            source = self.solution.read_bytes()
            diagnose(self.mistakes, attempt, reference, findings, failures, source, seconds=seconds)


def grade(asked: dict[str, Any], source: bytes, supply: Supply, loaded: Loaded | None = None) -> Report:
    """Grade `source` as the request asks, with what is `loaded` already. Raises ConfinementFailed before anything of the
    attempt's is run. Whoever supplied the attempt's process ends it: nobody waits for that.
    """
    return _Grading(asked, source, supply, loaded).run()


class _Grading:
    def __init__(self, asked: dict[str, Any], source: bytes, supply: Supply, loaded: Loaded | None) -> None:
        self._asked, self._source, self._loaded = asked, source, loaded
        self._deadline = time.monotonic() + asked["timeout"]
        self._folder = Path(asked["katas"]) / asked["slug"]
        self._solution = Path(asked["solutions"]) / f"{asked['slug']}.py"
        kata = loaded.kata if loaded is not None else catalog.load(self._folder)
        self._wanted = list(kata.entries)
        self._supply = supply
        self.attempt = self._attempt(deadline=self._deadline)
        self._seconds = {"properties": 0.0, "diagnosis": 0.0}

    def _attempt(self, *, deadline: float, withhold: Sequence[str] | None = ()) -> Attempt:
        """A process with the attempt's source in it, after these operations were withheld; without it where that is None."""
        asked = self._asked
        request = wire.Request(
            op="load",
            fields={
                "filename": Path(asked["attempt"]).name or "attempt.py",
                "wanted": [] if withhold is None else self._wanted,
                "seed": asked["seed"],
                "withhold": list(withhold or ()),
            },
            tensors=(wire.source_tensor(b"" if withhold is None else self._source),),
        )
        return Attempt(
            self._supply, request, call_seconds=min(asked["call_seconds"], asked["timeout"]), deadline=deadline,
            least_tier=asked["least_tier"],
        )

    def run(self) -> Report:
        try:
            loaded = self.attempt.start()
        except AttemptDied as death:
            return self._ungraded(f"while it was imported: {death.reason}")
        if loaded.status != wire.OK:
            return self._ungraded(_why_not_loaded(loaded))
        folder = self._folder
        handle = Handle(self.attempt)
        reference = local_handle(self._solution) if self._loaded is None else Handle(self._loaded.answers)
        started = time.perf_counter()
        findings, failures = self._run_hidden_tests(reference)
        self._seconds["properties"] = time.perf_counter() - started
        core = [finding for finding in findings if finding.tier == "core"]
        outcome: ReportOutcome = "passed" if all(finding.outcome == "passed" for finding in core) else "failed"
        not_written = outcome == "failed" and _nothing_written(findings)
        diagnosed = Diagnosed()
        known = (folder / "mistakes.py").is_file()  # a kata that is being written may have none yet
        # What hangs or dies whatever it is asked would do so again, as long as the deadline lets it.
        answers = any(finding.outcome in ("passed", "failed") for finding in findings)
        if outcome == "failed" and answers and not not_written and known and self._asked["diagnose"]:
            started = time.perf_counter()
            system.stay_on(self._asked.get("processor"))  # from here on they take turns
            try:
                left = max(1.0, self._deadline - time.monotonic())
                with _at_most(min(2 * DIAGNOSIS_SECONDS, left)):
                    diagnosed = diagnose(
                        (self._loaded and self._loaded.mistakes) or load(folder),
                        handle,
                        reference,
                        findings,
                        failures,
                        self._source if len(self._source) <= MOST_READ else b"",
                        seconds=min(DIAGNOSIS_SECONDS, left),
                    )
            except _TooLate:
                diagnosed = Diagnosed(notes=["the diagnosis took too long and was left out"])
            except Exception as error:  # the verdict stands without its diagnosis
                diagnosed = Diagnosed(notes=[f"the diagnosis itself failed, please report it: {error!r}"])
            self._seconds["diagnosis"] = time.perf_counter() - started
        return self._report(outcome, findings=findings, diagnosed=diagnosed, not_written=not_written)

    def _run_hidden_tests(self, reference: Handle) -> Found:
        found: list[Found] = []

        def run(tests: HiddenTests) -> None:
            found.append(self._tested(tests, reference))

        if self._loaded is not None:
            run(self._loaded.tests)
        else:
            with_hidden_tests(self._folder / f"test_{self._asked['slug']}.py", run)
        return found[0]

    def _tested(self, tests: HiddenTests, reference: Handle) -> Found:
        attempt = self.attempt
        found = tests.run(
            Handle(attempt), reference, seed=self._asked["seed"], only=tuple(self._asked["properties"]),
            deadline=self._deadline, deaths=lambda: attempt.deaths, begin=self._begin
        )  # fmt: skip
        if not self._asked["unaided"] or not unaided.is_due(found):
            return found
        attempt.stop()  # one process at a time
        # Time of its own: what passes may have used up the rest on properties that never decide.
        deadline = max(self._deadline, time.monotonic() + min(UNAIDED_SECONDS, self._asked["timeout"]))
        look = unaided.SecondLook(
            tests, self._solution, lambda withhold: self._attempt(deadline=deadline, withhold=withhold),
            forbidden=sorted(attempt.forbidden), deadline=deadline,
        )  # fmt: skip
        return look.judged(found)

    def _begin(self, case: Case | None) -> None:
        """A case begins: what was learnt from the reference about it is of use."""
        if self._loaded is not None:
            self._loaded.answers.begin(case)
            self.attempt.ask_ahead(self._loaded.foreseen.after(case))

    def _ungraded(self, because: str) -> Report:
        return self._report("ungraded", because=because)

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
        tier, landlock, seccomp, *less = self.attempt.force or ("0", "0", "0")
        diagnosed = diagnosed or Diagnosed()
        return Report(
            kata=self._asked["slug"],
            attempt=self._asked["attempt"],
            outcome=outcome,
            seed=self._asked["seed"],
            findings=findings or [],
            diagnosis=diagnosed.diagnoses,
            ungraded_because=because,
            attempt_output=bytes(self.attempt.output).decode("utf-8", "replace"),
            isolation=Isolation(tier=int(tier), landlock=int(landlock), seccomp=seccomp == "1", notes=list(less)),
            seconds=self._seconds,
            versions={"attn_kata": __version__, "torch": str(torch.__version__), "python": platform.python_version()},
            pictures=diagnosed.pictures,
            not_written=not_written,
            part=bool(self._asked["properties"]),
            explained=diagnosed.explained,
            notes=diagnosed.notes,
        )


class _TooLate(BaseException):
    """The diagnosis took longer than it may; no `except Exception` on the way is to swallow it."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _TooLate when it takes longer: a source or an output may be made to be slow to look at.

    Where there are no timer signals (Windows), the face's own deadline is what is left.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: object) -> None:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _nothing_written(findings: list[Finding]) -> bool:
    """Whether every property that was tried met the stub's NotImplementedError."""
    tried = [finding for finding in findings if finding.outcome != "skipped"]
    return bool(tried) and all((finding.message or "").startswith("not written yet") for finding in tried)


def _why_not_loaded(reply: wire.Reply) -> str:
    if reply.status == wire.SYNTAX:
        message, line, text = (*reply.texts, "", "", "")[:3]
        at = f" in line {line}: {text.strip()}" if line not in ("", "0") else ""
        return f"it is not Python ({message}){at}"
    if reply.status == wire.NO_ENTRY:
        return _say_missing(reply.texts[0].split(), reply.texts[1:])
    raised = read_raised(reply.texts)
    if raised.types[0] == "ModuleNotFoundError":
        return f"it imports something that is not here: {AttemptRaised(raised).message}"
    if raised.types[0] == "SystemExit":
        return "it ends the process while it is imported (sys.exit)"
    return f"it raises while it is imported: {AttemptRaised(raised).message}"


def _say_missing(missing: list[str], names: tuple[str, ...]) -> str:
    import difflib

    wanted = " and ".join(f'"{name}"' for name in missing)
    found = f"it defines {', '.join(names)}" if names else "it defines no function or class"
    near = [match for name in missing for match in difflib.get_close_matches(name, names, 1, 0.6)]
    hint = f"; is {', '.join(near)} meant to be it?" if near else ""
    return f"it has no {wanted}; {found}{hint}"
