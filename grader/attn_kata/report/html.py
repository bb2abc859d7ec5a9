"""The report as one self-contained page: no network, no script; light and dark, for screen, phone and paper.

`cell` gives the same report as the output of a notebook's cell, in the colours of the notebook.

Text from the attempt is made safe to print (`plain`), and the template escapes it.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

import jinja2

from attn_kata import templates
from attn_kata.report.heatmaps import HEIGHT as ROW
from attn_kata.report.heatmaps import LEFT, SIZE, TOP, Drawing, draw
from attn_kata.report.listing import Line, around, lines
from attn_kata.report.model import Finding, Report
from attn_kata.report.plain import capped, one_line, plain, unicode
from attn_kata.report.score import Score
from attn_kata.report.summary import (
    counts,
    diagnosis_lead,
    failing,
    message,
    more_lines,
    picture_title,
    place,
    sizes,
    skipped_because,
    verdict,
)

OUTPUT_LINES = 200
OUTPUT_CHARACTERS = 20_000


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """One finding as the page shows it."""

    name: str
    claim: str
    outcome: str
    mark: str
    sizes: str
    message: list[str]
    look_at: str
    drawings: list[Drawing]


@dataclass(frozen=True, kw_only=True)
class _Group:
    """The findings of one tier. Those that do not hold are shown in full, the others by name."""

    title: str
    open: list[_Shown]
    skipped: list[tuple[str, list[_Shown]]]
    held: list[_Shown]


@dataclass(frozen=True, kw_only=True)
class _Mistake:
    """One mistake of the diagnosis, with the source lines around it."""

    id: str
    title: str
    explanation: str
    question: str
    line: int | None
    place: str
    source: list[Line]


def render(
    report: Report,
    *,
    width: int = 80,
    color: bool = False,
    source: bytes = b"",
    score: Score | None = None,
    private: bool = False,
    said: str = "",
) -> str:
    """The report as one HTML page; `source` is the graded attempt, `score` is shown with its sum, `said` is another verdict.

    With `private`, the page is for a person who must not know how it was graded: without the seed and the times.
    """
    return _filled("report.html.j2", report, source, score=score, private=private, said=said)


def cell(report: Report, *, source: bytes = b"") -> str:
    """The report as a piece of HTML for the output of a notebook's cell. The code is above it, so it is not repeated."""
    return _filled("report_cell.html.j2", report, source)


def _filled(
    template: str, report: Report, source: bytes, *, score: Score | None = None, private: bool = False, said: str = ""
) -> str:
    marked = [mistake.line for found in report.diagnosis for mistake in found.mistakes if mistake.line is not None]
    code = lines(source, marked, report.cells)
    every = report.attempt_output.rstrip().split("\n")
    counted = [
        (line, sum(1 for _ in same)) for line, same in groupby(every)
    ]  # a print in forward repeats on every call
    repeated = "\n".join(f"{line}   ({count} times)" if count > 1 and line else line for line, count in counted)
    printed, left_out = capped(repeated, lines=OUTPUT_LINES, characters=OUTPUT_CHARACTERS)
    graded = report.outcome != "ungraded" and not report.not_written
    loaded = _environment().get_template(template)
    page = loaded.render(
        cell=template == "report_cell.html.j2",
        in_cells=bool(report.cells),
        kata=report.kata,
        attempt=one_line(report.attempt),
        verdict=said or verdict(report),
        outcome="ungraded" if report.not_written else report.outcome,
        counts="" if report.outcome == "ungraded" else counts(report),
        because=plain(report.ungraded_because or "").split("\n") if report.ungraded_because else [],
        not_written=report.not_written,
        seconds=None if private else report.seconds.get("total", 0.0),
        score=None if score is None else [*score.lines()],
        reading=_in_lines(report.reading),
        reading_flags=[shlex.quote(one_line(flag)) for flag in report.reading["flags"]] if report.reading else [],
        lead=diagnosis_lead(report) if report.diagnosis else "",
        diagnosis=[
            [
                _Mistake(
                    id=one_line(mistake.id),
                    title=one_line(mistake.title),
                    explanation=plain(mistake.explanation),
                    question=plain(mistake.question),
                    line=mistake.line,
                    place=one_line(place(mistake)),
                    source=around(code, mistake.line) if mistake.line is not None else [],
                )
                for mistake in found.mistakes
            ]
            for found in report.diagnosis
        ],
        pictures_title=picture_title(report.pictures[0]) if report.pictures else "",
        pictures=[drawing for picture in report.pictures for drawing in draw(picture)],
        groups=_groups(report) if graded else [],
        printed=printed,
        left_out=more_lines(left_out) if left_out else "",
        code=code,
        notes=[plain(note) for note in (*report.notes, *_isolation(report))],
        seed=None if private else report.seed,
        tier=report.isolation.tier if report.versions else None,  # without versions, nothing was run
        versions={one_line(name): one_line(version) for name, version in report.versions.items()},
    )
    return unicode(page).rstrip() + "\n"


@cache
def _environment() -> jinja2.Environment:
    """It keeps the compiled templates: a class has hundreds of pages."""
    environment = templates.environment(escape=True)
    environment.globals.update(LEFT=LEFT, TOP=TOP, SIZE=SIZE, ROW=ROW)
    return environment


def _groups(report: Report) -> list[_Group]:
    held = [finding.property for finding in report.findings if finding.outcome == "passed"]
    groups = []
    for tier, title in (("core", "Properties"), ("edge", "Beyond the bar (never decides)")):
        findings = [finding for finding in report.findings if finding.tier == tier]
        if not findings:
            continue
        skipped: dict[str, list[_Shown]] = {}
        for finding in findings:
            if finding.outcome == "skipped":
                skipped.setdefault(skipped_because(finding, held), []).append(_shown(finding))
        groups.append(
            _Group(
                title=title,
                open=[_shown(finding) for finding in failing(report, tier)],
                skipped=list(skipped.items()),
                held=[_shown(finding) for finding in findings if finding.outcome == "passed"],
            )
        )
    return groups


def _shown(finding: Finding) -> _Shown:
    return _Shown(
        name=one_line(finding.property),
        claim=plain(finding.claim),
        outcome=finding.outcome,
        mark={"failed": "FAIL", "errored": "ERROR", "skipped": "SKIP", "passed": "PASS"}[finding.outcome],
        sizes=sizes(finding),
        message=message(finding),
        look_at=plain(finding.look_at or ""),
        drawings=draw(finding.example) if finding.example else [],
    )


def _in_lines(value: Any) -> Any:
    """The value with every text of it in one printable line."""
    if isinstance(value, dict):
        return {key: _in_lines(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_in_lines(one) for one in value]
    return one_line(value, most=600) if isinstance(value, str) else value


def _isolation(report: Report) -> list[str]:
    if report.isolation.tier >= 1 or report.outcome == "ungraded":
        return []
    missing = " ".join(report.isolation.notes)
    return [f"Isolation: tier {report.isolation.tier}, for your own code only. {missing}".rstrip()]
