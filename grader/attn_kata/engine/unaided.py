"""Whether the right answers are the attempt's own: they are asked for again where nothing ready-made works.

An attempt can hide from the recording what it calls, or be another one while it is watched. So what has passed, and has a
property that forbids something, gives its values once more from a fresh process in which that is withheld (see `withheld`).
There the numbers decide, as they do elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..properties.failures import PropertyFailed
from ..properties.runner import Found
from ..report.model import Finding

FORBIDS, VALUES = "from_scratch", "values"  # properties; every kata that has the first has the second
_NOT_WITHOUT = "its values are right only where something ready-made can be called, though none was seen to run"


def is_due(found: Found, forbidden: Iterable[str]) -> bool:
    """Whether something was forbidden and everything that decides holds, its values among it."""
    findings = found[0]
    held = {finding.property for finding in findings if finding.outcome == "passed"}
    decided = all(finding.outcome == "passed" for finding in findings if finding.tier == "core")
    return bool(set(forbidden)) and decided and {FORBIDS, VALUES} <= held


def values(properties: Iterable[str]) -> tuple[str, ...]:
    """Those of the properties that compare values, and so are asked for again."""
    return tuple(name for name in properties if name.startswith(VALUES))


def judged(found: Found, again: list[Finding]) -> Found:
    """`found`, with the property that forbids failed where `again`, of the same properties unaided, does not hold."""
    findings, failures = found
    rank = {"failed": 0, "errored": 1, "skipped": 2}
    not_held = sorted((each for each in again if each.outcome != "passed"), key=lambda each: rank[each.outcome])
    if not not_held:
        return found
    outcome, message = not_held[0].outcome, not_held[0].message
    if outcome == "failed":
        message = _NOT_WITHOUT
        failures = {**failures, FORBIDS: PropertyFailed(message)}
    else:
        outcome = "errored"
    return [
        replace(each, outcome=outcome, message=message) if each.property == FORBIDS else each for each in findings
    ], failures
