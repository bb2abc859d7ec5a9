"""The report as GitHub workflow commands, which the runner shows as annotations at the lines of a change.

Format and escaping: https://docs.github.com/actions/reference/workflow-commands-for-github-actions and the runner's own
toolkit (`packages/core/src/command.ts`). The attempt's prints are left out: a printed line could be a command.
"""

from __future__ import annotations

import re

from attn_kata.report.model import Finding, Report
from attn_kata.report.plain import one_line, plain
from attn_kata.report.summary import diagnosis_lead, finding_text, headline


def render(report: Report, *, width: int = 80, color: bool = False, source: bytes = b"") -> str:
    """One command per mistake and failed property, then the verdict on a separate line."""
    lines: list[str] = []
    if report.outcome == "ungraded":
        because = plain(report.ungraded_because or "")
        named = re.search(r" in line (\d{1,9})(?::|$)", because)
        lines.append(_command(report, "error", f"Not graded: {because}", title="not graded", line=named and named[1]))
    elif report.not_written:
        said = "Everything still raises NotImplementedError."
        lines.append(_command(report, "error", said, title="not written yet"))
    else:
        lines += _mistakes(report)
        lines += [_finding(report, finding) for finding in report.findings if finding.outcome in ("failed", "errored")]
    return "\n".join([*lines, headline(report)]) + "\n"


def _mistakes(report: Report) -> list[str]:
    level = "error" if report.outcome == "failed" else "warning"
    lead = f"{diagnosis_lead(report).rstrip(':.')}.\n" if len(report.diagnosis) > 1 else ""
    return [
        _command(
            report,
            level,
            f"{lead}{plain(mistake.explanation)}\nAsk yourself: {plain(mistake.question)}",
            title=f"{mistake.title} ({mistake.id})" + (f", {mistake.place}" if mistake.place else ""),
            line=_line(report, mistake.line),
        )
        for found in report.diagnosis
        for mistake in found.mistakes
    ]


def _line(report: Report, line: int | None) -> int | None:
    """The line in the attempt's file; None in a notebook, which is JSON, and in another file that the attempt imports."""
    if not report.cells or line is None:
        return line
    cell = next((one for one in report.cells if one.first <= line <= one.last), None)
    own = cell is not None and not cell.name and report.attempt.endswith(".py")
    return line - cell.first + cell.starts_at if cell is not None and own else None


def _finding(report: Report, finding: Finding) -> str:
    level = "error" if finding.tier == "core" else "notice"
    beyond = "" if finding.tier == "core" else " (beyond the bar: reported, never decides)"
    return _command(report, level, finding_text(finding), title=f"{finding.property} {finding.outcome}{beyond}")


def _command(report: Report, level: str, text: str, *, title: str, line: int | str | None = None) -> str:
    where = f"file={_property(one_line(report.attempt))}" + (f",line={line}" if line else "")
    return f"::{level} {where},title={_property(one_line(title))}::{_data(plain(text))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
