"""A second look at what has passed: whether its answers are its own, where what its process says of them does not count.

An attempt can hide from the recording what it calls, or tell of its inputs what it likes. So what has passed shows a trace of
how it computes, in a fresh process in which what is forbidden is withheld (see `withheld`), and the trace is carried out
elsewhere (see `replay`). There the numbers decide, as they do in the first look; they are drawn anew, so that nobody knows
them. Whatever else decides is asked for again, without traces, where what is forbidden is withheld.

An attempt whose numbers leave torch's tensors on the way cannot be followed. (They come back without a gradient, so a right one
has to have its own backward pass as well.) Its values are asked for once more where what is forbidden is withheld, to tell it
from one that cannot do without. That it can is not enough, because machine code can have back what is withheld.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..properties.failures import NoAnswer, PropertyFailed
from ..properties.handle import Handle, Transport
from ..properties.local import Local, load_namespace
from ..properties.runner import Found, HiddenTests
from ..report.model import Finding, FindingOutcome
from .remote import Attempt
from .replay.asking import Replayed, Traced

FORBIDS, VALUES = "from_scratch", "values"  # properties; every kata that has the first has the second
INPUTS = "inputs_unmodified"  # every kata has it
MOST_CASES = 2  # of a property: one would do, and a loop over elements is long
_NOT_WITHOUT = "its values are right only where something ready-made can be called, though none was seen to run"
_NOT_SEEN = "something ready-made is part of how its values are made, though it was not seen to run: {}"
_NOT_FOLLOWED = "how its values are made could not be followed: {}. Compute with tensors from the inputs to the output"
_CALL_NOT_FOLLOWED = "what a call does could not be followed: {}"
_LEFT_TENSORS = "numbers leave torch's tensors on the way (.item(), .tolist(), NumPy, a thread of its own)"


def is_due(found: Found) -> bool:
    """Whether everything that decides holds."""
    return all(finding.outcome == "passed" for finding in found[0] if finding.tier == "core")


class SecondLook:
    """A second look at one attempt.

    `process` starts a process in which the attempt's source is loaded after operations with these words in their names were
    withheld; for None, one without the source. It ends the one before. `forbidden` are the words.
    """

    def __init__(
        self, tests: HiddenTests, solution: Path, process: Callable[[Sequence[str] | None], Attempt], *,
        forbidden: Sequence[str], deadline: float,
    ) -> None:  # fmt: skip
        self._tests, self._process = tests, process
        self._forbidden, self._deadline = forbidden, deadline
        self._seed = secrets.randbits(31)
        self._reference = Local(load_namespace(solution))
        self._held: tuple[str, ...] = ()
        self._forbidden_in_it: str | None = None
        self._why_not_followed: str | None = None
        self._changed: str | None = None  # in words, an input that a call changed

    def judged(self, found: Found) -> Found:
        """`found`, with what does not hold here failed."""
        self._held = tuple(finding.property for finding in found[0] if finding.outcome == "passed")
        values = values_among(self._held) if FORBIDS in self._held else ()
        wanted = (*values, *seen_elsewhere(self._held))
        if not wanted:
            return found
        decided = [each.property for each in found[0] if each.tier == "core" and each.outcome == "passed"]
        rest = [name for name in decided if name not in (*wanted, FORBIDS)] if values else []
        findings, failures = self._replayed(wanted, rest)
        unanswered = []
        for finding in findings:
            failure = failures.get(finding.property)
            if finding.property in (*values, *rest) or finding.outcome == "passed":
                continue
            if failure is None or isinstance(failure, NoAnswer):
                unanswered.append(finding)
            else:
                found = _with(found, finding.property, "failed", failure.message)
        if self._changed is not None and INPUTS in self._held:
            found = _with(found, INPUTS, "failed", self._changed)
        if values:
            found = self._with_values(found, [finding for finding in findings if finding.property in (*values, *rest)])
        return found if not is_due(found) else self._with_unanswered(found, unanswered)

    def _with_unanswered(self, found: Found, findings: list[Finding]) -> Found:
        """`found`, with what could not be looked at undecided: else an attempt would have itself followed elsewhere only."""
        for finding in findings:
            not_followed = _CALL_NOT_FOLLOWED.format(self._why_not_followed or _LEFT_TENSORS)
            message = not_followed if finding.outcome == "failed" else finding.message
            found = _with(found, finding.property, "errored", message or "")
        return found

    def _with_values(self, found: Found, findings: list[Finding]) -> Found:
        """`found`, with what forbids failed where something forbidden is in a trace, or the values do not hold."""
        if self._forbidden_in_it is not None:
            return _with(found, FORBIDS, "failed", _NOT_SEEN.format(self._forbidden_in_it))
        for outcome in ("errored", "skipped"):  # a process that died, or too little time
            for finding in findings:
                if finding.outcome == outcome:
                    return _with(found, FORBIDS, "errored", finding.message or "")
        not_held = [finding.property for finding in findings if finding.outcome != "passed"]
        if not not_held:
            return found
        attempt = self._process(self._forbidden)
        unaided, _ = self._run(attempt, attempt, not_held)
        if all(finding.outcome == "passed" for finding in unaided):
            return _with(found, FORBIDS, "errored", _NOT_FOLLOWED.format(self._why_not_followed or _LEFT_TENSORS))
        return _with(found, FORBIDS, "failed", _NOT_WITHOUT)

    def _replayed(self, wanted: Sequence[str], rest: Sequence[str]) -> Found:
        """What is found of `wanted` where traces are carried out, or where there is none; and what `rest` is, unaided."""
        attempt = self._process(self._forbidden)
        traced = Traced(attempt, self._reference)
        shown, not_shown = self._run(traced, attempt, wanted, most_cases=MOST_CASES)
        without = [finding for finding in shown if finding.outcome != "passed"]
        if rest:
            without += self._run(attempt, attempt, rest, most_cases=MOST_CASES)[0]
        attempt.stop()
        wanted = [finding.property for finding in shown if finding.outcome == "passed"]
        self._why_not_followed = traced.not_followed
        if not wanted:
            return without, not_shown
        elsewhere = self._process(None)
        replayed = Replayed(elsewhere, traced, list(self._forbidden))
        findings, failures = self._run(replayed, elsewhere, wanted, most_cases=MOST_CASES)
        self._forbidden_in_it, self._changed = replayed.forbidden, replayed.changed
        self._why_not_followed = self._why_not_followed or replayed.not_followed
        return [*without, *findings], {**not_shown, **failures}

    def _run(
        self, transport: Transport, process: Attempt, only: Sequence[str], *, most_cases: int | None = None
    ) -> Found:
        return self._tests.run(
            Handle(transport), Handle(self._reference), seed=self._seed, only=tuple(only), held=self._held,
            most_cases=most_cases, deaths=lambda: process.deaths, deadline=self._deadline,
        )  # fmt: skip


def values_among(properties: Iterable[str]) -> tuple[str, ...]:
    """Those of the properties that compare values."""
    return tuple(name for name in properties if name.startswith(VALUES))


def seen_elsewhere(properties: Iterable[str]) -> tuple[str, ...]:
    """Those of the properties that ask what became of inputs or of memory, which an attempt's process could lie about."""
    return tuple(name for name in properties if name.endswith(("_unmodified", "own_memory", "copies_nothing")))


def _with(found: Found, name: str, outcome: FindingOutcome, message: str) -> Found:
    """`found`, with the property of this name found to be so."""
    findings, failures = found
    if outcome == "failed":
        failures = {**failures, name: PropertyFailed(message)}
    changed = [replace(each, outcome=outcome, message=message) if each.property == name else each for each in findings]
    return changed, failures
