"""Runs the hidden tests of one kata, in this process, and gathers one finding for each property.

pytest collects them; this plugin then runs each test once for every case, smallest first, and turns a failure into words. It
calls them itself, with the few things that a hidden test may ask for: pytest's own protocol would take as long as they do. No
configuration, plugin or conftest of the machine's is read.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from attn_kata.properties.claims import Property
from attn_kata.properties.failures import (
    AttemptDied,
    AttemptRaised,
    NoAnswer,
    OutOfTime,
    PropertyFailed,
    ReadyMade,
    Refused,
)
from attn_kata.properties.handle import Handle, number_for
from attn_kata.report.model import Finding, FindingOutcome

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
Case = tuple[int, str, int]  # a seed, a property and the place among its cases

ASKED_FOR = ("attempt", "reference", "sizes")  # what a hidden test may ask for by its arguments' names


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
    """The hidden tests of one kata as pytest collected them, to be run as often as one likes. Also pytest's plugin for that."""

    def __init__(self, use: Callable[[HiddenTests], None]) -> None:
        self._use = use
        self._tests: list[_Test] = []
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
        begin: Callable[[Case | None], None] = lambda _: None,
    ) -> Found:
        """One finding for each property, in the file's order; and the failures by property.

        `only` limits them to these and what they need. `deaths` says how often the attempt's process has died, and `deadline`
        (monotonic) when it is too late for another property. `begin` is told of each case before it is run, and of the end
        with None. Properties that block operations are asked first. Raises HiddenTestFault.
        """
        running = _Run(
            attempt=attempt, reference=reference, seed=seed, deaths=deaths, deadline=deadline, begin=begin
        )  # fmt: skip
        wanted = self._wanted(only)
        for test in sorted(wanted, key=lambda test: not test.property.blocks):
            try:
                running.take(test)
            except Exception as error:
                raise HiddenTestFault(f"{test.property.name}: {traceback.format_exc()}") from error
        begin(None)
        if not running.findings:
            raise HiddenTestFault("no hidden test was run")
        running.settle()
        return [running.findings[test.property.name] for test in wanted], running.failures

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
        for item in session.items:
            asks = frozenset(inspect.signature(item.obj).parameters)
            if asks - set(ASKED_FOR):
                unknown = ", ".join(sorted(asks - set(ASKED_FOR)))
                self.fault = f"{item.nodeid} asks for {unknown}; what there is: {', '.join(ASKED_FOR)}"
            self._tests.append(_Test(call=item.obj, property=item.obj.property, asks=asks))

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.fault is None:
            self.fault = f"{report.nodeid}: {report.longreprtext}"

    def _wanted(self, only: tuple[str, ...]) -> list[_Test]:
        wanted = set(only)
        if not wanted:
            return self._tests
        needs = {test.property.name: test.property.needs for test in self._tests}
        pending = list(wanted)
        while pending:
            for need in needs.get(pending.pop(), ()):
                if need not in wanted:
                    wanted.add(need)
                    pending.append(need)
        return [test for test in self._tests if test.property.name in wanted]


@dataclass(frozen=True, kw_only=True)
class _Test:
    """A hidden test, the property that it is of, and what it asks for."""

    call: Callable[..., None]
    property: Property
    asks: frozenset[str]


@dataclass(kw_only=True)
class _Run:
    """One run of hidden tests, and what it has found so far."""

    attempt: Handle
    reference: Handle
    seed: int
    deaths: Callable[[], int]
    deadline: float
    begin: Callable[[Case | None], None]
    held: set[str] = field(default_factory=set)
    findings: dict[str, Finding] = field(default_factory=dict)
    failures: dict[str, PropertyFailed] = field(default_factory=dict)
    blocking: Property | None = None  # the property whose operations are blocked now

    def take(self, test: _Test) -> None:
        """Run one test."""
        tested = test.property
        finding = self._finding(test)
        self.findings[tested.name] = finding
        if finding.outcome == "passed":
            self.held.add(tested.name)
        if tested.blocks and finding.outcome in ("passed", "skipped"):
            with contextlib.suppress(AttemptDied):  # the next property says what became of it
                self.attempt._block(tested.blocks)
                self.blocking = tested

    def settle(self) -> None:
        """A property that could not be looked at by itself holds where others passed while its operations were blocked."""
        tested = self.blocking
        if tested is None or self.findings[tested.name].outcome != "skipped":
            return
        if any(finding.outcome == "passed" for name, finding in self.findings.items() if name != tested.name):
            self.findings[tested.name] = _finding(tested, "passed", None)

    def _finding(self, test: _Test) -> Finding:
        tested = test.property
        lacking = [need for need in tested.needs if need not in self.held]
        started = time.perf_counter()
        if lacking:
            return _finding(tested, "skipped", f"needs {lacking[0]}, which does not hold")
        if self.deaths() >= MAX_DEATHS:
            return _finding(tested, "skipped", f"not tried: the attempt's process died {MAX_DEATHS} times")
        if time.monotonic() > self.deadline:
            return _finding(tested, "skipped", "not tried: the grading ran out of time")
        for place, sizes in enumerate(tested.cases):
            outcome: FindingOutcome
            example, look_at = None, None
            try:
                self._call(test, place, self.attempt)
                continue
            except Refused as refusal:
                return self._refused(tested, refusal)
            except PropertyFailed as failure:
                not_written = isinstance(failure, AttemptRaised) and failure.not_written
                if tested.blocks and not isinstance(failure, ReadyMade) and not not_written:
                    # It says nothing about what was called. From here on what is forbidden refuses, which will.
                    return _finding(tested, "skipped", f"not judged by itself: {failure.message}")
                outcome, message, example = "failed", failure.message, failure.example
                look_at = None if isinstance(failure, NoAnswer) else tested.look_at
                self.failures[tested.name] = failure
                if not_written:
                    message = "not written yet: it raises NotImplementedError"
            except OutOfTime as late:
                outcome, message = "errored", late.reason
            except AttemptDied as death:
                outcome, message = "errored", death.reason
            except Exception as error:
                # A shape that no test can index, say. It is the attempt's where the same test takes the reference's answers.
                if not self._takes_the_reference(test, place):
                    raise
                outcome = "failed"
                message = f"what it returned cannot be used as the contract says ({type(error).__name__}: {error})"
                self.failures[tested.name] = NoAnswer(message)
            case = None if sizes is None else sizes.as_dict()
            seconds = time.perf_counter() - started
            return _finding(tested, outcome, message, look_at, case=case, example=example, seconds=seconds)
        return _finding(tested, "passed", None, seconds=time.perf_counter() - started)

    def _refused(self, tested: Property, refusal: Refused) -> Finding:
        """The attempt met a blocked operation: the property that blocks it fails, and this one is not judged."""
        if self.blocking is not None and self.findings[self.blocking.name].outcome != "failed":
            self.findings[self.blocking.name] = _finding(self.blocking, "failed", refusal.message, self.blocking.look_at)
            self.failures[self.blocking.name] = refusal
            self.held.discard(self.blocking.name)
        return _finding(tested, "skipped", f"not judged: it {refusal.message}")

    def _call(self, test: _Test, place: int, attempt: Handle) -> None:
        """Run one case of a test, with numbers that depend on nothing but the seed and the case."""
        self.begin((self.seed, test.property.name, place))
        seed_case(self.seed, test.property, place)
        given = {"attempt": attempt, "reference": self.reference, "sizes": test.property.cases[place]}
        test.call(**{name: value for name, value in given.items() if name in test.asks})

    def _takes_the_reference(self, test: _Test, place: int) -> bool:
        """Whether the test, with the reference in the attempt's place, ends without a fault of its own."""
        try:
            self._call(test, place, self.reference)
        except PropertyFailed:
            return True
        except Exception:
            return False
        return True


def seed_case(seed: int, tested: Property, place: int) -> None:
    """Seed torch for one case, so that a case's numbers depend on nothing but the seed and the case."""
    case = zlib.crc32(f"{seed} {tested.name} {place}".encode())
    # Not torch.manual_seed, which takes 2 ms: it formats three stacks for the sake of devices that are not used here.
    torch.default_generator.manual_seed(case)
    number_for(case)


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
