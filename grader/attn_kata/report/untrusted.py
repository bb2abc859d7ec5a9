"""A report without any hidden inputs, for the author of a file that somebody else graded.

An attempt sees its inputs and could reveal them: in prints, in the text of an exception, in the sizes of its results.
The report keeps which properties hold, in our own words, and the mistakes that were found.
"""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.report.model import Finding, Report
from attn_kata.report.summary import is_ready_made

NOTE = "Graded as another person's file: numbers, inputs and prints are left out."
DEVICE_UNVERIFIED = "The device property is not verified: it relies on what the code reports about its own tensors."
AGAIN = "To grade with the same inputs again: --seed {seed}"

# An attempt may have influenced any other message.
_OUR_OWN = re.compile(
    r"not written yet: it raises NotImplementedError"
    r"|no answer within [\d.]+ s"
    r"|the grading ran out of time"
    r"|it crashed \(SIG[A-Z]+\)"
    r"|it ran out of memory"
    r"|it was killed \(SIGKILL\)"
    r"|it ended its process"
)


def without_hidden_inputs(report: Report) -> Report:
    """The report without examples, pictures, sizes, numbers, exception texts and prints."""
    unverified = any(each.property.endswith("device") and each.outcome == "passed" for each in report.findings)
    # Not the lines that its process named either: there are as many of them as the attempt has.
    notes = [note.partition(": ")[0].partition(" (line ")[0] for note in report.notes]
    return replace(
        report,
        findings=[_redacted(finding) for finding in report.findings],
        attempt_output="",
        pictures=[],
        stopped_by=None,
        notes=[*notes, *[DEVICE_UNVERIFIED] * unverified, NOTE, AGAIN.format(seed=report.seed)],
    )


def own_words(message: str) -> str:
    """The beginning of a message, if it is ours for certain; else ""."""
    ours = _OUR_OWN.match(message)
    return ours.group() if ours else ""


def _redacted(finding: Finding) -> Finding:
    message = finding.message
    if finding.outcome in ("failed", "errored"):
        ours = own_words(message or "")
        if ours:
            message = ours
        elif is_ready_made(finding):  # the name in it came from the attempt's process
            message = "calls something ready-made"
        elif finding.outcome == "errored":
            message = "it gave no answer"
        else:
            message = "it raises an exception" if (message or "").startswith("raised ") else "it does not hold"
    elif finding.outcome == "skipped" and (message or "").startswith("not judged"):
        message = "not judged"
    return replace(finding, message=message, case=None, example=None, line=None, place=None)
