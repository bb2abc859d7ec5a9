"""The summary of a class for a terminal: the verdicts, the scores, the mistakes, and what was not graded."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from attn_kata.classroom.summary import Row, Summary
from attn_kata.report.page import Page
from attn_kata.report.plain import one_line
from attn_kata.report.score import shown

MOST_ROWS = 60  # students in the table; more are in results.csv
MOST_MISTAKES = 12
MOST_PROPERTIES = 8
MOST_SENTENCES = 20
WITHOUT_VERDICT = {
    "ungraded": "Cannot run: 0 points",
    "missing": "Not graded: no points yet. Correct it, and give the same command again",
}
_STYLES = {"passed": "green", "failed": "red", "ungraded": "yellow", "missing": "yellow"}


def render(summary: Summary, *, folder: str, width: int, color: bool) -> str:
    """The summary as text; `folder` is where the pages are."""
    page = Page(width=width, color=color)
    count = len(summary.rows)
    said = ", ".join(f"{number} {name.lower()}" for name, number in summary.verdicts().items())
    page.line((summary.kata, "bold"), f"  {count} submission{'' if count == 1 else 's'}: {said}")
    mean, median = summary.mean(), summary.median()
    if mean is not None and median is not None:
        page.line(f"Scores: mean {shown(mean)}, median {shown(median)}. Seed {summary.seed}.")
    _table(page, summary.rows)
    _mistakes(page, summary)
    _properties(page, summary)
    _without_verdict(page, summary)
    page.blank()
    page.line((f"In '{folder}': class.html, students/, teacher/, results.csv, results.json", "bold"))
    return "\n".join(page.lines()) + "\n"


def _table(page: Page, rows: list[Row]) -> None:
    if len(rows) > MOST_ROWS:
        return
    page.section("Students")
    widest = min(30, max((cell_len(row.student) for row in rows), default=0))
    for row in rows:
        points = "" if row.score is None else shown(row.score.points)
        what = ", ".join(row.mistakes) or row.because
        name = Text(one_line(row.student))
        name.truncate(widest, overflow="ellipsis", pad=True)
        head = Text.assemble("  ", name, "  ", (row.verdict.lower().ljust(15), _STYLES[row.outcome]))
        line = Text.assemble(head, f"{points:>5}  ", what)
        line.truncate(page.width, overflow="ellipsis")
        page.as_is(line)


def _mistakes(page: Page, summary: Summary) -> None:
    if not summary.mistakes:
        return
    page.section("The mistakes")
    for each in summary.mistakes[:MOST_MISTAKES]:
        example = ", ".join(part for part in (each.student, each.place) if part)
        page.hanging((f"{each.count:>4}", "bold"), f"{each.title} ({each.id}). For example {example}", indent=6)
    _more(page, len(summary.mistakes) - MOST_MISTAKES)


def _properties(page: Page, summary: Summary) -> None:
    broken = sorted(
        (each for each in summary.properties if each.tier == "core" and each.failed), key=lambda each: -each.failed
    )
    if not broken:
        return
    page.section("Properties that failed most")
    for each in broken[:MOST_PROPERTIES]:
        page.hanging((f"{each.failed:>4}", "bold"), f"{each.name}: {one_line(each.claim)}", indent=6)
    _more(page, len(broken) - MOST_PROPERTIES)


def _without_verdict(page: Page, summary: Summary) -> None:
    for outcome, title in WITHOUT_VERDICT.items():
        rows = summary.with_outcome(outcome)
        if rows:
            page.section(title)
            for row in rows[:MOST_SENTENCES]:  # in full: the table cuts a long reason
                page.line(f"{row.student}: {one_line(row.because, most=400)}", indent=2)
            _more(page, len(rows) - MOST_SENTENCES)
    if summary.left_out:
        page.section("Left out, because they belong to nobody")
        for sentence in summary.left_out[:MOST_SENTENCES]:
            page.line(one_line(sentence), indent=2)
        _more(page, len(summary.left_out) - MOST_SENTENCES)


def _more(page: Page, count: int) -> None:
    if count > 0:
        page.line((f"… and {count} more", "dim"), indent=2)
