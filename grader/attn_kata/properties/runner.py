"""Runs the hidden tests of one kata with pytest, in this process, and gathers one finding for each property.

pytest collects, resolves what a test asks for, and runs; this plugin runs each test once for every case, smallest first, and
turns a failure into words. No configuration, plugin or conftest of the machine's is read.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ..engine.remote import AttemptDied, OutOfTime
from ..report.model import Finding, FindingOutcome
from .claims import Property
from .failures import AttemptRaised, NoAnswer, PropertyFailed
from .handle import Handle

MAX_DEATHS = 3

# pytest's own plugins that a grading has no use for; each costs time at start-up.
_WITHOUT = (
    "cacheprovider", "capture", "debugging", "doctest", "faulthandler", "junitxml", "logging", "legacypath", "monkeypatch",
    "pastebin", "pytester_assertions", "recwarn", "setuponly", "setupplan", "skipping", "stepwise", "terminal",
    "terminalprogress", "threadexception", "tmpdir", "unittest", "unraisableexception", "warnings", "subtests",
)  # fmt: skip


class HiddenTestFault(Exception):
    """A hidden test failed in a way that no attempt can cause: a fault of ours."""


def run_hidden_tests(
    path: Path,
    attempt: Handle,
    reference: Handle,
    *,
    seed: int,
    only: tuple[str, ...] = (),
    deaths: Callable[[], int] = lambda: 0,
    deadline: float = float("inf"),
) -> tuple[list[Finding], dict[str, PropertyFailed]]:
    """One finding for each property of the hidden tests at `path`, in the file's order; and the failures by property.

    `only` limits them to these and what they need. Raises HiddenTestFault.
    """
    gatherer = _Gatherer(attempt, reference, seed=seed, only=only, deaths=deaths, deadline=deadline)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    arguments = [str(path), "-c", os.devnull, "--rootdir", str(path.parent), "--noconftest", "--assert=plain",
                 "--import-mode=importlib"]  # fmt: skip
    for plugin in _WITHOUT:
        arguments += ["-p", f"no:{plugin}"]
    code = pytest.main(arguments, plugins=[gatherer])
    if gatherer.fault is not None:
        raise HiddenTestFault(gatherer.fault)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) or not gatherer.findings:
        raise HiddenTestFault(f"pytest ended with {code!r} and {len(gatherer.findings)} findings for {path.name}")
    return gatherer.findings, gatherer.failures


class _Gatherer:
    """The pytest plugin: fixtures for what a hidden test asks for, and the run of one property."""

    def __init__(
        self,
        attempt: Handle,
        reference: Handle,
        *,
        seed: int,
        only: tuple[str, ...],
        deaths: Callable[[], int],
        deadline: float,
    ) -> None:
        self._attempt, self._reference = attempt, reference
        self._seed, self._only = seed, only
        self._deaths, self._deadline = deaths, deadline
        self.findings: list[Finding] = []
        self.failures: dict[str, PropertyFailed] = {}
        self.fault: str | None = None

    @pytest.fixture
    def attempt(self) -> Handle:
        return self._attempt

    @pytest.fixture
    def reference(self) -> Handle:
        return self._reference

    @pytest.fixture
    def sizes(self) -> None:
        """Filled for each case when the test is run."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        wanted = set(self._only)
        if not wanted:
            return
        needs = {item.obj.property.name: item.obj.property.needs for item in items}
        pending = list(wanted)
        while pending:
            for need in needs.get(pending.pop(), ()):
                if need not in wanted:
                    wanted.add(need)
                    pending.append(need)
        items[:] = [item for item in items if item.obj.property.name in wanted]

    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool:
        test, funcargs = pyfuncitem.obj, pyfuncitem.funcargs
        arguments = {name: funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
        self.findings.append(self._finding(test, arguments))
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.fault is None:
            self.fault = f"{report.nodeid}: {report.longreprtext}"

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.fault is None:
            self.fault = f"{report.nodeid}: {report.longreprtext}"

    def _finding(self, test: Any, arguments: dict[str, Any]) -> Finding:
        tested: Property = test.property
        held = {finding.property for finding in self.findings if finding.outcome == "passed"}
        lacking = [need for need in tested.needs if need not in held]
        started = time.perf_counter()
        if lacking:
            return _finding(tested, "skipped", f"needs {lacking[0]}, which does not hold")
        if self._deaths() >= MAX_DEATHS:
            return _finding(tested, "skipped", f"not tried: the attempt's process died {MAX_DEATHS} times")
        if time.monotonic() > self._deadline:
            return _finding(tested, "skipped", "not tried: the grading ran out of time")
        for place, sizes in enumerate(tested.cases):
            seed_case(self._seed, tested, place)
            if "sizes" in arguments:
                arguments["sizes"] = sizes
            outcome: FindingOutcome
            example, look_at = None, None
            try:
                test(**arguments)
                continue
            except PropertyFailed as failure:
                outcome, message, example = "failed", failure.message, failure.example
                look_at = None if isinstance(failure, NoAnswer) else tested.look_at
                self.failures[tested.name] = failure
                if isinstance(failure, AttemptRaised) and failure.not_written:
                    message = "not written yet: it raises NotImplementedError"
            except OutOfTime as late:
                outcome, message = "errored", late.reason
            except AttemptDied as death:
                outcome, message = "errored", death.reason
            case = None if sizes is None else sizes.as_dict()
            seconds = time.perf_counter() - started
            return _finding(tested, outcome, message, look_at, case=case, example=example, seconds=seconds)
        return _finding(tested, "passed", None, seconds=time.perf_counter() - started)


def seed_case(seed: int, tested: Property, place: int) -> None:
    """Seed torch for one case, so that a case's numbers depend on nothing but the seed and the case."""
    torch.manual_seed(zlib.crc32(f"{seed} {tested.name} {place}".encode()))


def _finding(
    tested: Property,
    outcome: FindingOutcome,
    message: str | None,
    look_at: str | None = None,
    *,
    case: Any = None,
    example: Any = None,
    seconds: float = 0.0,
) -> Finding:
    return Finding(
        property=tested.name,
        claim=tested.claim,
        tier=tested.tier,
        outcome=outcome,
        message=message,
        look_at=look_at,
        case=case,
        needs=list(tested.needs),
        example=example,
        seconds=seconds,
    )
