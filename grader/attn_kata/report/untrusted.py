"""A report that may be handed to the person whose file was graded for somebody else: nothing in it of the hidden inputs.

An attempt sees its inputs, and could say them: in its prints, in the text of an exception, in the sizes of what it returns.
What is left is which properties hold, in our own words, and the mistakes that were recognised.
"""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.report.model import Finding, Report

NOTE = "Graded as another person's file: numbers, inputs and what the code printed are left out."
ON_ITS_WORD = "Whether all lies on the device of the inputs is its own word: with one device there are no numbers for it."
AGAIN = "The same inputs again: --seed {seed}"

# Whatever else a message says, an attempt may have had a hand in it.
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
    on_its_word = any(each.property.endswith("device") and each.outcome == "passed" for each in report.findings)
    notes = [note.partition(": ")[0] for note in report.notes]
    return replace(
        report,
        findings=[_redacted(finding) for finding in report.findings],
        attempt_output="",
        pictures=[],
        notes=[*notes, *[ON_ITS_WORD] * on_its_word, NOTE, AGAIN.format(seed=report.seed)],
    )


def _redacted(finding: Finding) -> Finding:
    message = finding.message
    if finding.outcome in ("failed", "errored"):
        ours = _OUR_OWN.match(message or "")
        if ours:
            message = ours.group()
        elif finding.outcome == "errored":
            message = "it gave no answer"
        else:
            message = "it raises an exception" if (message or "").startswith("raised ") else "it does not hold"
    return replace(finding, message=message, case=None, example=None)
