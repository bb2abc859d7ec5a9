"""The pages of a class: the summary, and for each student one page for the student and one for the teacher.

A student's page is a report without hidden inputs, as `--untrusted` makes it, and also without the seed, without sizes in
explanations, and without the text of exceptions: the attempt writes that text, and it has seen its inputs.
"""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
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
from attn_kata.report.untrusted import AGAIN, own_words, without_hidden_inputs

MOST_IN_THE_MAP = 1_000  # students; a browser becomes slow with more cells, and nobody reads them
MOST_LETTERS = 80  # of a file name
MOST_BYTES = 200  # of a file name: systems allow 255, and a suffix and a number come behind it
_MARKS = {"passed": ("✓", "p"), "failed": ("✗", "f"), "errored": ("!", "f"), "skipped": ("·", "s")}
FAULT = "Something went wrong while it was graded. Your teacher can see what."  # the attempt may have written the fault's words
_NOT_PYTHON = "it is not Python"  # Python's own words about the student's own text, before any of it has run

_WHEN = ("while it was imported", "while it was read")


def teacher(kept: Kept, row: Row, kata: str) -> str:
    """Everything about one student."""
    report = kept.report or _without_report(kept, kata, kept.fault)
    shown_as = replace(report, attempt=_title(kept))
    return html.render(shown_as, source=kept.source, score=row.score, private=kept.report is None, said=row.verdict)


def student(kept: Kept, row: Row, kata: str) -> str:
    """What the student may see."""
    report = _without_report(kept, kata, FAULT) if kept.report is None else for_student(kept.report)
    shown_as = replace(report, attempt=_title(kept))
    return html.render(shown_as, source=kept.source, score=row.score, private=True, said=row.verdict)


def for_student(report: Report) -> Report:
    """The report without anything that tells how it was graded."""
    hidden = without_hidden_inputs(mistakes.in_our_words(report))
    again = AGAIN.format(seed=report.seed)
    return replace(
        hidden,
        seed=0,
        seconds={},
        notes=[note for note in hidden.notes if note != again],
        ungraded_because=None if report.ungraded_because is None else _why(report.ungraded_because),
        reading=None,  # the attempt names its parameters while it runs, and could tell the seed with them
    )


def _why(because: str) -> str:
    """Why it cannot run, without anything that the attempt may have written."""
    if because.startswith(_NOT_PYTHON):
        return because
    when, _, reason = because.partition(": ")
    if when in _WHEN and (ours := own_words(reason)):
        return f"{when}: {ours}"
    return re.split("[:;(]", because, maxsplit=1)[0].strip()


def _title(kept: Kept) -> str:
    return f"{kept.listed.name}: {kept.listed.file}" if kept.listed.file else kept.listed.name


def _without_report(kept: Kept, kata: str, fault: str) -> Report:
    """For a student without a report, one that says why; `fault` is said where the grading did not come to an end."""
    waiting = "It is not graded yet."
    return Report(
        kata=kata,
        attempt=kept.listed.file,
        outcome="ungraded",
        seed=0,
        findings=[],
        diagnosis=[],
        ungraded_because=kept.listed.problem or (fault if kept.fault else waiting),
        attempt_output="",
        isolation=Isolation(tier=0, landlock=0, seccomp=False, notes=[]),
        seconds={},
        versions={},
    )


class PageNames:
    """A file name for each student, all different, also where a system takes `A` for `a`, or `é` for `e` and an accent."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, student: str) -> str:
        """The next name, without a suffix."""
        letters = (
            letter if letter.isalnum() or letter in "-." else "_" for letter in unicodedata.normalize("NFC", student)
        )
        stem = re.sub("_+", "_", "".join(letters)).strip("._")[:MOST_LETTERS] or "student"
        stem = stem.encode()[:MOST_BYTES].decode("utf-8", "ignore")
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
