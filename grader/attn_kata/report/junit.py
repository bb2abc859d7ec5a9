"""The report as JUnit XML, for Jenkins, GitLab and GitHub's test reporters: one test case per property.

An edge property ("beyond the bar") never decides. When it does not hold, its test case is skipped, with the failure text.
"""

from __future__ import annotations

from xml.etree import ElementTree as xml

from attn_kata.report.model import Finding, Report
from attn_kata.report.plain import capped, one_line, plain
from attn_kata.report.summary import diagnosis_text, finding_text, headline, more_lines, skipped_because

OUTPUT_LINES = 200
OUTPUT_CHARACTERS = 20_000


def render(report: Report, *, width: int = 80, color: bool = False, source: bytes = b"") -> str:
    """The report as one test suite."""
    cases = [_case(report, finding) for finding in report.findings]
    if report.ungraded_because is not None:
        cases.append(_ungraded(report))
    total = f"{max(0.0, report.seconds.get('total', 0.0)):.3f}"
    counted = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
        "time": total,
    }
    suite = xml.Element("testsuite", {"name": f"attn-kata.{report.kata}", **counted})
    properties = xml.SubElement(suite, "properties")
    told = {"attempt": report.attempt, "outcome": report.outcome, "seed": report.seed, **report.versions}
    for name, value in told.items():
        xml.SubElement(properties, "property", {"name": one_line(name), "value": one_line(str(value))})
    suite.extend(cases)
    xml.SubElement(suite, "system-out").text = "\n\n".join(filter(None, [headline(report), diagnosis_text(report)]))
    printed, left_out = capped(report.attempt_output, lines=OUTPUT_LINES, characters=OUTPUT_CHARACTERS)
    if printed:
        more = [more_lines(left_out)] if left_out else []
        xml.SubElement(suite, "system-err").text = "\n".join(["Printed by your code:", *printed, *more])
    whole = xml.Element("testsuites", {"name": "attn-kata", **counted})
    whole.append(suite)
    xml.indent(whole)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(whole, encoding="unicode") + "\n"


def _case(report: Report, finding: Finding) -> xml.Element:
    case = _element(report, finding.property, finding.seconds)
    if finding.outcome == "passed":
        return case
    text = finding_text(finding)
    first = one_line((finding.message or "").strip().split("\n")[0]) or plain(finding.claim)
    if finding.outcome == "skipped":
        held = [other.property for other in report.findings if other.outcome == "passed"]
        _outcome(case, "skipped", skipped_because(finding, held))
    elif finding.tier == "edge":
        _outcome(case, "skipped", f"beyond the bar (reported, never decides), does not hold: {first}", text=text)
    elif finding.outcome == "errored":
        _outcome(case, "error", first, kind="errored", text=text)
    else:
        _outcome(case, "failure", first, kind="PropertyFailed", text=text)
    return case


def _ungraded(report: Report) -> xml.Element:
    case = _element(report, "graded", 0.0)
    because = report.ungraded_because or ""
    _outcome(case, "error", one_line(because.split("\n")[0]), kind="ungraded", text=plain(because))
    return case


def _element(report: Report, name: str, seconds: float) -> xml.Element:
    told = {"name": one_line(name), "classname": f"attn_kata.{report.kata}", "time": f"{max(0.0, seconds):.3f}"}
    return xml.Element("testcase", {**told, "file": one_line(report.attempt)})


def _outcome(case: xml.Element, tag: str, message: str, *, kind: str | None = None, text: str | None = None) -> None:
    attributes = {"message": one_line(message), **({"type": kind} if kind else {})}
    xml.SubElement(case, tag, attributes).text = text
