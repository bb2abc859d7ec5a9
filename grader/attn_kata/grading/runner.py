"""Runs hidden tests in this process, and gathers one finding for each property: for gradings and for mutants.

Each test is run once for every case, smallest first, until one fails, and a failure is turned into words. The tests are
called here and not by pytest: its own protocol would take as long as they do.
"""

from __future__ import annotations

import contextlib
import re
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from attn_kata.grading.hidden_tests import Begin, HiddenTest, HiddenTestFault
from attn_kata.properties.claims import Property
from attn_kata.properties.failures import (
    AttemptDied,
    AttemptRaised,
    NoAnswer,
    OutOfTime,
    PropertyFailed,
    RaisedAnother,
    ReadyMade,
    Refused,
)
from attn_kata.properties.handle import Handle
from attn_kata.report.model import Finding, FindingOutcome

MAX_DEATHS = 3

_NUMBERS = re.compile(r"\d[\d.,\s]*")  # one, or several as in a shape

Found = tuple[list[Finding], dict[str, PropertyFailed]]


def run(
    tests: list[HiddenTest],
    attempt: Handle,
    reference: Handle,
    *,
    seed: int,
    only: tuple[str, ...] = (),
    deaths: Callable[[], int] = lambda: 0,
    deadline: float = float("inf"),
    begin: Begin = lambda _: None,
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> Found:
    """One finding for each property, in the tests' order; and the failures by property.

    `only` limits them to these and what they need. `deaths` says how often the attempt's process has died, and `deadline`
    (monotonic) when it is too late for another property. `begin` is told of each case before it is run, and of the end
    with None. Properties that block operations are asked first. `left_out` are properties that are not asked, with the reason;
    what needs them is asked. Raises HiddenTestFault.
    """
    running = Run(attempt=attempt, reference=reference, seed=seed, deaths=deaths, deadline=deadline, begin=begin)
    running.left_out = left_out
    names = with_needs(tests, only)
    wanted = [test for test in tests if not only or test.property.name in names]
    for test in sorted(wanted, key=lambda test: not test.property.blocks):
        running.take(test)
    begin(None)
    if not running.findings:
        raise HiddenTestFault("no hidden test was run")
    running.settle()
    return [running.findings[test.property.name] for test in wanted], running.failures


def with_needs(tests: list[HiddenTest], names: tuple[str, ...]) -> set[str]:
    """These properties, what they need, and what that needs."""
    needs = {test.property.name: test.property.needs for test in tests}
    wanted = set(names)
    while more := {need for name in wanted for need in needs.get(name, ())} - wanted:
        wanted |= more
    return wanted


@dataclass(kw_only=True)
class Run:
    """One run of hidden tests, and what it has found so far. `held` has the properties that passed."""

    attempt: Handle
    reference: Handle
    seed: int
    deaths: Callable[[], int] = lambda: 0
    deadline: float = float("inf")
    begin: Begin = lambda _: None
    held: set[str] = field(default_factory=set)
    findings: dict[str, Finding] = field(default_factory=dict)
    failures: dict[str, PropertyFailed] = field(default_factory=dict)
    blocking: Property | None = None  # the property whose operations are blocked now
    left_out: Mapping[str, str] = field(default_factory=dict)  # properties that are not asked, with the reason
    met: list[tuple[Property, NoAnswer | RaisedAnother]] = field(default_factory=list)  # a call that gave no answer

    def take(self, test: HiddenTest) -> Finding:
        """Run one test. Raises HiddenTestFault."""
        tested = test.property
        try:
            finding = self._finding(test)
        except Exception as error:
            raise HiddenTestFault(f"{tested.name}: {traceback.format_exc()}") from error
        self.findings[tested.name] = finding
        if finding.outcome == "passed" or tested.name in self.left_out:
            self.held.add(tested.name)
        if tested.blocks and finding.outcome in ("passed", "skipped"):
            with contextlib.suppress(AttemptDied):  # the next property says what became of it
                self.attempt._block(tested.blocks)
                self.blocking = tested
        return finding

    def settle(self) -> None:
        """What only the whole run can tell: whether the blocked operations were needed, and what is one failure."""
        self._settle_blocking()
        self._tell_once()

    def _settle_blocking(self) -> None:
        """A property that could not be looked at by itself holds where others passed while its operations were blocked."""
        tested = self.blocking
        if tested is None or self.findings[tested.name].outcome != "skipped":
            return
        if any(finding.outcome == "passed" for name, finding in self.findings.items() if name != tested.name):
            self.findings[tested.name] = _finding(tested, "passed", None)

    def _tell_once(self) -> None:
        """Properties that met the same exception are skipped, except the one that tells it. `failures` keeps them all."""
        causes: dict[tuple[object, ...], list[tuple[Property, NoAnswer | RaisedAnother]]] = {}
        for tested, failure in self.met:
            if self.findings[tested.name].outcome != "passed":
                causes.setdefault(_cause(failure), []).append((tested, failure))
        for cause, met in causes.items():
            # The first, but a core one if there is one, and one that needs the answer that did not come.
            met.sort(key=lambda one: (bool(one[0].blocks), one[0].tier != "core", isinstance(one[1], RaisedAnother)))
            (teller, _), *others = met
            same = "met the same exception as" if cause[0] == "raised" else "the same failure as"
            for other, _ in others:
                self.findings[other.name] = _finding(other, "skipped", f"{same} {teller.name}")

    def _finding(self, test: HiddenTest) -> Finding:
        tested = test.property
        lacking = [need for need in tested.needs if need not in self.held]
        started = time.perf_counter()
        if tested.name in self.left_out:
            return _finding(tested, "skipped", self.left_out[tested.name])
        if lacking:
            return _finding(tested, "skipped", f"needs {lacking[0]}, which does not hold")
        if self.deaths() >= MAX_DEATHS:
            return _finding(tested, "skipped", f"not tried: the attempt's process died {MAX_DEATHS} times")
        if time.monotonic() > self.deadline:
            return _finding(tested, "skipped", "not tried: the grading ran out of time")
        for place in range(len(tested.cases)):
            outcome: FindingOutcome
            example, look_at, line = None, None, None
            try:
                test.run(place, self.attempt, self.reference, seed=self.seed, begin=self.begin)
                continue
            except Refused as refusal:
                return self._refused(tested, refusal)
            except PropertyFailed as failure:
                if isinstance(failure, (NoAnswer, RaisedAnother)):
                    self.met.append((tested, failure))
                not_written = isinstance(failure, AttemptRaised) and failure.not_written
                if tested.blocks and not isinstance(failure, ReadyMade) and not not_written:
                    # It says nothing about what was called. From here on what is forbidden refuses, which will.
                    return _finding(tested, "skipped", f"not judged by itself: {failure.message}")
                outcome, message, example = "failed", failure.message, failure.example
                line = failure.raised.line if isinstance(failure, (AttemptRaised, RaisedAnother)) else None
                look_at = None if isinstance(failure, NoAnswer) else tested.look_at
                self.failures[tested.name] = failure
                if not_written:
                    message = "not written yet: it raises NotImplementedError"
            except OutOfTime as late:
                outcome, message = "errored", late.reason
            except AttemptDied as death:
                outcome, message = "errored", death.reason
            sizes = test.sizes(place, self.seed)
            case = None if sizes is None else sizes.as_dict()
            seconds = time.perf_counter() - started
            return _finding(tested, outcome, message, look_at, case=case, example=example, line=line, seconds=seconds)
        return _finding(tested, "passed", None, seconds=time.perf_counter() - started)

    def _refused(self, tested: Property, refusal: Refused) -> Finding:
        """The attempt met a blocked operation: the property that blocks it fails, and this one is not judged."""
        if self.blocking is not None and self.findings[self.blocking.name].outcome != "failed":
            self.findings[self.blocking.name] = _finding(
                self.blocking, "failed", refusal.message, self.blocking.look_at
            )
            self.failures[self.blocking.name] = refusal
            self.held.discard(self.blocking.name)
        return _finding(tested, "skipped", f"not judged: it {refusal.message}")


def _cause(failure: NoAnswer | RaisedAnother) -> tuple[object, ...]:
    """Equal for the same exception at the same line, and for the same answer that is none; numbers do not matter."""
    if isinstance(failure, (AttemptRaised, RaisedAnother)):
        raised = failure.raised
        return "raised", raised.types, _NUMBERS.sub("#", raised.text), raised.line
    return "answered", _NUMBERS.sub("#", failure.message)


def _finding(
    tested: Property,
    outcome: FindingOutcome,
    message: str | None,
    look_at: str | None = None,
    *,
    case: Any = None,
    example: Any = None,
    line: int | None = None,
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
        line=line,
        seconds=seconds,
    )
