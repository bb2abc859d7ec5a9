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


Found = tuple[list[Finding], dict[str, PropertyFailed]]


def run_hidden_tests(
    path: Path,
    attempt: Handle,
    reference: Handle,
    *,
    seed: int,
    only: tuple[str, ...] = (),
    deaths: Callable[[], int] = lambda: 0,
    deadline: float = float("inf"),
) -> Found:
    """One finding for each property of the hidden tests at `path`, in the file's order; and the failures by property.

    `only` limits them to these and what they need. Raises HiddenTestFault.
    """
    found: list[Found] = []

    def once(tests: HiddenTests) -> None:
        found.append(tests.run(attempt, reference, seed=seed, only=only, deaths=deaths, deadline=deadline))

    with_hidden_tests(path, once)
    return found[0]


def with_hidden_tests(path: Path, use: Callable[[HiddenTests], None]) -> None:
    """Have pytest collect the hidden tests at `path`, and call `use` with them.

    Raises HiddenTestFault, and what `use` raises.
    """
    tests = HiddenTests(use)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    arguments = [str(path), "-c", os.devnull, "--rootdir", str(path.parent), "--noconftest", "--assert=plain",
                 "--import-mode=importlib"]  # fmt: skip
    for plugin in _WITHOUT:
        arguments += ["-p", f"no:{plugin}"]
    code = pytest.main(arguments, plugins=[tests])
    if tests.fault is not None:
        raise HiddenTestFault(tests.fault)
    if tests.raised is not None:
        raise tests.raised
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) or not tests.used:
        raise HiddenTestFault(f"pytest ended with {code!r} for {path.name}")


class HiddenTests:
    """The hidden tests of one kata as pytest collected them, to be run as often as one likes. Also pytest's plugin for that:
    fixtures for what a hidden test asks for, and the run of one property.
    """

    def __init__(self, use: Callable[[HiddenTests], None]) -> None:
        self._use = use
        self._items: list[Any] = []
        self._attempt: Handle | None = None
        self._reference: Handle | None = None
        self._seed = 0
        self._deaths: Callable[[], int] = lambda: 0
        self._deadline = float("inf")
        self._held: frozenset[str] = frozenset()
        self.findings: list[Finding] = []
        self.failures: dict[str, PropertyFailed] = {}
        self.fault: str | None = None
        self.raised: Exception | None = None
        self.used = False

    def run(
        self,
        attempt: Handle,
        reference: Handle,
        *,
        seed: int,
        only: tuple[str, ...] = (),
        deaths: Callable[[], int] = lambda: 0,
        deadline: float = float("inf"),
        held: tuple[str, ...] = (),
    ) -> Found:
        """As `run_hidden_tests`. What is known to have `held` is not run for the sake of what needs it."""
        self._attempt, self._reference = attempt, reference
        self._seed, self._deaths, self._deadline = seed, deaths, deadline
        self.findings, self.failures, self.fault, self._held = [], {}, None, frozenset(held)
        items = self._wanted(only)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if self.fault is not None:
            raise HiddenTestFault(self.fault)
        if not self.findings:
            raise HiddenTestFault("no hidden test was run")
        return self.findings, self.failures

    def pytest_runtestloop(self) -> bool:
        """In the place of pytest's own loop."""
        if self.fault is None:
            self.used = True
            try:
                self._use(self)
            except Exception as error:  # pytest would print it and go on
                self.raised = error
        return True

    def pytest_collection_finish(self, session: Any) -> None:
        self._items = list(session.items)

    @pytest.fixture
    def attempt(self) -> Handle | None:
        return self._attempt

    @pytest.fixture
    def reference(self) -> Handle | None:
        return self._reference

    @pytest.fixture
    def sizes(self) -> None:
        """Filled for each case when the test is run."""

    def _wanted(self, only: tuple[str, ...]) -> list[Any]:
        wanted = set(only)
        if not wanted:
            return self._items
        needs = {item.obj.property.name: item.obj.property.needs for item in self._items}
        pending = list(wanted)
        while pending:
            for need in needs.get(pending.pop(), ()):
                if need not in wanted | self._held:
                    wanted.add(need)
                    pending.append(need)
        return [item for item in self._items if item.obj.property.name in wanted]

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
        held = self._held | {finding.property for finding in self.findings if finding.outcome == "passed"}
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
            except Exception as error:
                # A shape that no test can index, say. It is the attempt's where the same test takes the reference's answers.
                if not self._takes_the_reference(test, arguments, place):
                    raise
                outcome = "failed"
                message = f"what it returned cannot be used as the contract says ({type(error).__name__}: {error})"
                self.failures[tested.name] = NoAnswer(message)
            case = None if sizes is None else sizes.as_dict()
            seconds = time.perf_counter() - started
            return _finding(tested, outcome, message, look_at, case=case, example=example, seconds=seconds)
        return _finding(tested, "passed", None, seconds=time.perf_counter() - started)

    def _takes_the_reference(self, test: Any, arguments: dict[str, Any], place: int) -> bool:
        """Whether the test, asked of the reference in the attempt's place, ends without a fault of its own."""
        seed_case(self._seed, test.property, place)
        asked = {name: self._reference if name == "attempt" else value for name, value in arguments.items()}
        try:
            test(**asked)
        except PropertyFailed:
            return True
        except Exception:
            return False
        return True


def seed_case(seed: int, tested: Property, place: int) -> None:
    """Seed torch for one case, so that a case's numbers depend on nothing but the seed and the case."""
    # Not torch.manual_seed, which takes 2 ms: it formats three stacks for the sake of devices that are not used here.
    torch.default_generator.manual_seed(zlib.crc32(f"{seed} {tested.name} {place}".encode()))


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
