"""The pages of a class: the summary, and for each student one page for the student and one for the teacher.

A student's page is a report without hidden inputs, as `--untrusted` makes it, and also without the seed, without sizes in
explanations, and without the text of exceptions: the attempt writes that text, and it has seen its inputs.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from attn_kata import resources, templates
from attn_kata.classroom import mistakes
from attn_kata.classroom.store import Kept
from attn_kata.classroom.summary import Row, Summary
from attn_kata.report import html
from attn_kata.report.model import Isolation, Report
from attn_kata.report.plain import unicode
from attn_kata.report.score import shown
from attn_kata.report.untrusted import AGAIN, without_hidden_inputs

MOST_IN_THE_MAP = 1_000  # students; a browser becomes slow with more cells, and nobody reads them
MOST_LETTERS = 80  # of a file name
_MARKS = {"passed": ("✓", "p"), "failed": ("✗", "f"), "errored": ("!", "f"), "skipped": ("·", "s")}
_NOT_PYTHON = "it is not Python"  # Python's own words about the student's own text, before any of it has run


def teacher(kept: Kept, row: Row) -> str:
    """Everything about one student."""
    report = _report(kept)
    shown_as = replace(report, attempt=_title(kept))
    return html.render(shown_as, source=kept.source, score=row.score, private=kept.report is None)


def student(kept: Kept, row: Row) -> str:
    """What the student may see."""
    report = replace(for_student(_report(kept)), attempt=_title(kept))
    return html.render(report, source=kept.source, score=row.score, private=True)


def for_student(report: Report) -> Report:
    """The report without anything that tells how it was graded."""
    hidden = without_hidden_inputs(report)
    again = AGAIN.format(seed=report.seed)
    because = report.ungraded_because
    if because is not None and not because.startswith(_NOT_PYTHON):
        because = re.split("[:;(]", because, maxsplit=1)[0].strip()
    return replace(
        hidden,
        seed=0,
        seconds={},
        notes=[note for note in hidden.notes if note != again],
        ungraded_because=because,
        diagnosis=[
            replace(
                found,
                mistakes=[
                    replace(one, explanation=mistakes.plain_explanation(one.id, one.title)) for one in found.mistakes
                ],
            )
            for found in hidden.diagnosis
        ],
    )


def _title(kept: Kept) -> str:
    return f"{kept.listed.name}: {kept.listed.file}" if kept.listed.file else kept.listed.name


def _report(kept: Kept) -> Report:
    """The report; for a student without one, a report that says why."""
    if kept.report is not None:
        return kept.report
    return Report(
        kata="not graded",
        attempt=kept.listed.file,
        outcome="ungraded",
        seed=0,
        findings=[],
        diagnosis=[],
        ungraded_because=kept.listed.problem or kept.fault or "it is not graded yet",
        attempt_output="",
        isolation=Isolation(tier=0, landlock=0, seccomp=False, notes=[]),
        seconds={},
        versions={},
    )


class PageNames:
    """A file name for each student, all different, also where the system does not tell upper from lower case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, student: str) -> str:
        """The next name, without a suffix."""
        letters = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in student)
        stem = re.sub("_+", "_", letters).strip("._")[:MOST_LETTERS] or "student"
        name, number = stem, 1
        while name.casefold() in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name.casefold())
        return name


# -------------------------------------------------------------------------------------------------------- the summary


def summary(summary: Summary) -> str:
    """`class.html`."""
    script = (resources.templates_folder() / "class.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    graded = [row for row in summary.rows if row.outcome != "missing"]
    core = [each for each in summary.properties if each.tier == "core"]
    page = (
        _environment()
        .get_template("class.html.j2")
        .render(
            summary=summary,
            graded=graded,
            in_map=graded if len(graded) <= MOST_IN_THE_MAP else [],
            bars=_bars(summary),
            hardest=sorted((each for each in core if each.held < len(graded)), key=lambda each: each.held),
            script=Markup(script),
            script_hash=digest,
        )
    )
    return unicode(page).rstrip() + "\n"


def _bars(summary: Summary) -> list[dict[str, Any]]:
    counted = summary.histogram()
    highest = max(counted) or 1
    return [
        {"label": f"{10 * at}–{10 * at + 9 if at < 9 else 100}", "count": count, "height": round(100 * count / highest)}
        for at, count in enumerate(counted)
    ]


@cache
def _environment() -> jinja2.Environment:
    environment = templates.environment(escape=True)
    environment.globals.update(MARKS=_MARKS, points=shown)
    return environment
