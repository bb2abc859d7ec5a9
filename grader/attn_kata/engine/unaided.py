"""A second look at what has passed: whether its answers are its own, where what its process says of them does not count.

An attempt can hide from the recording what it calls, or tell of its inputs what it likes. So what has passed shows traces of
how it computes, in a fresh process in which what is forbidden is withheld (see `withheld`), and they are carried out elsewhere
(see `replay`), for everything that decides. There the numbers decide, as they do in the first look; they are drawn anew, so
that nobody knows them. What is not traced (devices, one product and the steps of a training, which the grader makes) is asked
for again where what is forbidden is withheld.

An attempt whose numbers leave torch's tensors on the way cannot be followed. (They come back without a gradient, so a right one
has to have its own backward pass as well.) It is asked once more where what is forbidden is withheld, to tell it from one that
cannot do without. That it can is not enough, because machine code can have back what is withheld.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..properties.failures import NoAnswer, PropertyFailed
from ..properties.handle import Handle, Transport
from ..properties.local import Local, load_namespace
from ..properties.remembered import Remembering
from ..properties.runner import Case, Found, HiddenTests
from ..report.model import Finding, FindingOutcome
from .line import AttemptDied
from .remote import Attempt
from .replay.asking import Replayed, Traced

FORBIDS = "from_scratch"  # a property
INPUTS = "inputs_unmodified"  # every kata has it
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
        self._seed, self._secret = secrets.randbits(31), secrets.token_bytes(32)
        self._reference = Local(load_namespace(solution))  # in the attempt's place
        self._answers = Remembering(Local(load_namespace(solution)))
        self._held: tuple[str, ...] = ()
        self._forbidden_in_it: str | None = None
        self._why_not_followed: str | None = None
        self._changed: str | None = None  # in words, an input that a call changed

    def judged(self, found: Found) -> Found:
        """`found`, with what does not hold here failed."""
        self._held = tuple(finding.property for finding in found[0] if finding.outcome == "passed")
        decided = [each.property for each in found[0] if each.tier == "core" and each.outcome == "passed"]
        elsewhere = seen_elsewhere(self._held)
        own = [name for name in decided if name not in (*elsewhere, FORBIDS)] if FORBIDS in self._held else []
        if FORBIDS not in self._held:
            found = self._asked_anew(found, [name for name in decided if name not in elsewhere])
        if not (own or elsewhere):
            return found
        findings, failures = self._replayed((*own, *elsewhere))
        not_held = [finding.property for finding in findings if finding.outcome == "failed"]
        if not_held and self._forbidden_in_it is None:  # for an attempt whose steps depend on numbers
            again, failed = self._replayed(not_held, near=True)
            findings = [*(finding for finding in findings if finding.property not in not_held), *again]
            failures |= failed
        unanswered = []
        for finding in findings:
            failure = failures.get(finding.property)
            if finding.property in own or finding.outcome == "passed":
                continue
            if failure is None or isinstance(failure, NoAnswer):
                unanswered.append(finding)
            else:
                found = _with(found, finding.property, "failed", failure.message)
        if self._changed is not None and INPUTS in self._held:
            found = _with(found, INPUTS, "failed", self._changed)
        if own:
            found = self._with_own(found, [finding for finding in findings if finding.property in own])
        return found if not is_due(found) else self._with_unanswered(found, unanswered)

    def _asked_anew(self, found: Found, names: Sequence[str]) -> Found:
        """`found`, with what does not hold for other numbers failed: those of a known seed can be learnt by heart."""
        if not names:
            return found
        attempt = self._process(self._forbidden)
        findings, failures = self._run(attempt, attempt, names)
        attempt.stop()
        for finding in findings:
            if finding.outcome != "passed":
                found = _with(found, finding.property, finding.outcome, finding.message or "")
        return found[0], {**found[1], **failures}

    def _with_unanswered(self, found: Found, findings: list[Finding]) -> Found:
        """`found`, with what could not be looked at undecided: else an attempt would have itself followed elsewhere only."""
        for finding in findings:
            not_followed = _CALL_NOT_FOLLOWED.format(self._why_not_followed or _LEFT_TENSORS)
            message = not_followed if finding.outcome == "failed" else finding.message
            found = _with(found, finding.property, "errored", message or "")
        return found

    def _with_own(self, found: Found, findings: list[Finding]) -> Found:
        """`found`, with what forbids failed where something forbidden is in a trace, or what an attempt is to do of its own
        does not hold."""
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

    def _replayed(self, wanted: Sequence[str], *, near: bool = False) -> Found:
        """What is found of `wanted` where traces are carried out; where no trace tells of it, where it was to be traced."""
        attempt = self._process(self._forbidden)
        traced = Traced(attempt, self._reference, near=near)
        try:
            self._run(traced, attempt, wanted)
            traced.collect()
        except AttemptDied as death:
            traced.not_followed = death.reason
        untold = [name for name in wanted if name in traced.untold]
        findings, failures = self._run(attempt, attempt, untold) if untold else ([], {})
        attempt.stop()
        self._why_not_followed = self._why_not_followed or traced.not_followed
        told = [name for name in wanted if name not in traced.untold]
        if not told:
            return findings, failures
        elsewhere = self._process(None)
        replayed = Replayed(elsewhere, traced, list(self._forbidden))
        found, failed = self._run(replayed, elsewhere, told)
        self._forbidden_in_it, self._changed = replayed.forbidden, self._changed or replayed.changed
        self._why_not_followed = self._why_not_followed or replayed.not_followed
        return [*findings, *found], {**failures, **failed}

    def _run(self, transport: Transport, process: Attempt, only: Sequence[str]) -> Found:
        def begin(case: Case | None) -> None:
            self._answers.begin(case)
            if isinstance(transport, (Traced, Replayed)):
                transport.begin(case)

        return self._tests.run(
            Handle(transport), Handle(self._answers), seed=self._seed, secret=self._secret, only=tuple(only), held=self._held,
            deaths=lambda: process.deaths, deadline=self._deadline, begin=begin,
        )  # fmt: skip


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
