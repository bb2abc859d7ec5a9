"""The report as Gradescope's results.json: https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format.

The score is that of `score`, of 100 points; its sum comes first. The properties are shown without points.
"""

from __future__ import annotations

import json
from typing import Any

from attn_kata.report import score
from attn_kata.report.model import Finding, Report
from attn_kata.report.plain import capped, one_line, plain
from attn_kata.report.rubric import Rubric
from attn_kata.report.summary import diagnosis_text, finding_text, headline, more_lines, not_graded, skipped_because

NOT_TRIED = "A property that was not tried is shown as failed: Gradescope knows only passed and failed."
OUTPUT_LINES = 100
OUTPUT_CHARACTERS = 10_000


def render(report: Report, *, width: int = 80, color: bool = False, source: bytes = b"") -> str:
    """The content of /autograder/results/results.json."""
    return json.dumps(results(report), indent=2, allow_nan=False) + "\n"


def results(report: Report, rubric: Rubric | None = None) -> dict[str, Any]:
    """The results as plain values, scored by `rubric` or the default one."""
    held = [finding.property for finding in report.findings if finding.outcome == "passed"]
    scored = score.of(report, rubric)
    return {
        "score": scored.points,
        "execution_time": round(max(0.0, report.seconds.get("total", 0.0))),
        "output": _output(report, scored),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_test(finding, held, number) for number, finding in enumerate(report.findings, 1)],
    }


def _test(finding: Finding, held: list[str], number: int) -> dict[str, Any]:
    passed = finding.outcome == "passed"
    if passed:
        output = plain(finding.claim)
    elif finding.outcome == "skipped":
        output = f"{plain(finding.claim)}\nnot tried: {skipped_because(finding, held).removeprefix('not tried: ')}"
    else:
        output = finding_text(finding)
    return {
        "status": "passed" if passed else "failed",
        "name": one_line(finding.property)
        + ("" if finding.tier == "core" else " (beyond the bar: reported, never decides)")
        + (" (not tried)" if finding.outcome == "skipped" else ""),
        "number": str(number),
        "output": output,
        "tags": [finding.tier, finding.outcome],
        "visibility": "visible",
    }


def _output(report: Report, scored: score.Score) -> str:
    parts = [headline(report), "\n".join(["Score:", *scored.lines()])]
    if report.ungraded_because:
        parts.append(plain(not_graded(report)))
    if any(finding.outcome == "skipped" for finding in report.findings):
        parts.append(NOT_TRIED)
    parts.append(diagnosis_text(report))
    parts += [f"Note: {plain(note)}" for note in report.notes]
    printed, left_out = capped(report.attempt_output, lines=OUTPUT_LINES, characters=OUTPUT_CHARACTERS)
    if printed:
        more = [more_lines(left_out)] if left_out else []
        parts.append("\n".join(["Printed by your code:", *printed, *more]))
    return "\n\n".join(part for part in parts if part)
