"""The short report for a terminal: what is wrong and what to do next, on one screen. `terminal` has the whole report.

It shows the diagnosis with the code around the marked line, one picture, and the first failing property; the rest is counted.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from rich.text import Text

from attn_kata.report import reading, terminal
from attn_kata.report.listing import Line, around, lines
from attn_kata.report.matrices import picture
from attn_kata.report.model import Example, Finding, NamedMistake, Report
from attn_kata.report.page import BODY, Page
from attn_kata.report.plain import capped, one_line, plain
from attn_kata.report.summary import asked, diagnosis_lead, failing, held_of, is_ready_made, more_lines, sizes, verdict

ROWS = 24
# How many lines of code before and after the marked one, and whether there is air below: the first that fits.
_LAYOUTS = (((2, 2), True), ((2, 2), False), ((2, 1), False), ((1, 1), False), ((1, 0), False), ((0, 0), False))
_PRINTED_LINES = 5
_MESSAGE_LINES = 6
_CHARACTERS = 800
_INDENT = 4


def render(
    report: Report,
    *,
    width: int = 80,
    color: bool = False,
    source: bytes = b"",
    advice: bool = True,
    options: str = "",
) -> str:
    """The report as text of `width` columns, if possible in `ROWS` rows; the whole one where no property fails.

    `source` is the attempt. `options` are added to the next `grade` command, and `advice` says what to do next.
    """
    if report.outcome != "failed" or report.not_written or not failing(report):
        return terminal.render(report, width=width, color=color, source=source, advice=advice, options=options)
    every = _marked(report, source)
    page = Page(width=width, color=color)
    for context, airy in _LAYOUTS:
        page = Page(width=width, color=color)
        _Folded(page, report, every, context=context, airy=airy).write(advice=advice, options=options)
        if len(page.lines()) <= ROWS:
            break
    return "\n".join(page.lines()) + "\n"


def _marked(report: Report, source: bytes) -> list[Line]:
    told = [mistake.line for found in report.diagnosis for mistake in found.mistakes]
    raised = [finding.line for finding in report.findings]
    return lines(source, [line for line in (*told, *raised) if line is not None], report.cells)


class _Folded:
    """One layout of the short report."""

    def __init__(self, page: Page, report: Report, every: list[Line], *, context: tuple[int, int], airy: bool) -> None:
        self._page, self._report, self._every, self._context, self._airy = page, report, every, context, airy
        self._shown: set[int] = set()  # lines of code

    def write(self, *, advice: bool, options: str) -> None:
        """Write it."""
        report, page = self._report, self._page
        first, *others = failing(report)
        self._verdict()
        if report.reading is not None:
            reading.write(page, report.reading)
        if is_ready_made(first):  # it matters more than any mistake in what was written
            page.blank()
            self._finding(first)
        self._diagnosis()
        drawn = bool(report.pictures)
        if drawn:
            self._picture(report.pictures[0])
        if not is_ready_made(first):
            page.blank()
            self._finding(first)
            if first.example is not None and not drawn:
                self._picture(first.example)
        self._printed()
        terminal.notes(page, report)
        self._rest(others, advice=advice, options=options)

    def _verdict(self) -> None:
        report = self._report
        what = f"  {one_line(report.attempt)}  {report.seconds.get('total', 0.0):.1f} s   {held_of(report)}"
        self._page.line((verdict(report), "bold red"), "  ", (report.kata, "bold"), what)

    def _diagnosis(self) -> None:
        if not self._report.diagnosis:
            return
        self._page.blank()
        self._page.line(diagnosis_lead(self._report))
        for found in self._report.diagnosis:
            for number, mistake in enumerate(found.mistakes):
                self._mistake(mistake, "and: " if number else "")

    def _mistake(self, mistake: NamedMistake, also: str) -> None:
        page = self._page
        page.line(also, (one_line(mistake.title), "bold red"), (f"  ({one_line(mistake.id)})", "dim"), indent=2)
        page.line(plain(mistake.explanation), indent=_INDENT)
        self._code(mistake)
        page.line(("ask yourself: ", "bold"), plain(mistake.question), indent=_INDENT)

    def _code(self, told: NamedMistake | Finding) -> None:
        """The code around its line, once."""
        line = told.line
        if line is None or line in self._shown:
            return
        self._shown.add(line)
        part = around(self._every, line, *self._context)
        if told.place:
            self._page.line((told.place, "bold"), indent=_INDENT)
        while part and not part[0].parts:
            part = part[1:]
        while part and not part[-1].parts:
            part = part[:-1]
        self._page.code([replace(one, marked=one.number == line) for one in part], indent=2)

    def _picture(self, example: Example) -> None:
        if self._airy:
            self._page.blank()
        self._page.drawing(picture(example, self._page.width - _INDENT, brief=True), indent=_INDENT)

    def _finding(self, finding: Finding) -> None:
        page = self._page
        mark, style = terminal.MARKS[finding.outcome]
        claim = f"  {plain(finding.claim)}"
        page.hanging((mark, style), Text.assemble((one_line(finding.property), "bold"), claim))
        message, left_out = capped(finding.message or "", lines=_MESSAGE_LINES, characters=_CHARACTERS)
        first, *rest = ["   ".join(filter(None, [sizes(finding), *message[:1]])), *message[1:]]
        for line in (first, *rest):
            if line:
                page.line(line, indent=BODY)
        if left_out:
            page.line((more_lines(left_out), "dim"), indent=BODY)
        self._code(finding)
        if finding.look_at and not self._report.diagnosis:  # the question of a mistake says it better
            page.line(("look at ", "bold"), plain(finding.look_at), indent=BODY)

    def _printed(self) -> None:
        printed, left_out = capped(terminal.printed(self._report), lines=_PRINTED_LINES, characters=_CHARACTERS)
        if not printed:
            return
        self._page.blank()
        self._page.line(("Printed by your code", "bold"))
        for line in printed:
            self._page.line(line, indent=2)
        if left_out:
            self._page.line((more_lines(left_out), "dim"), indent=2)

    def _rest(self, others: list[Finding], *, advice: bool, options: str) -> None:
        """What is not shown, and the next command."""
        skipped = sum(finding.outcome == "skipped" for finding in asked(self._report, "core"))
        said = [f"{len(others)} more {'fails' if len(others) == 1 else 'fail'}"] if others else []
        said += [f"{skipped} not tried"] if skipped else []
        attempt = shlex.quote(one_line(self._report.attempt))
        grade = " ".join(filter(None, ["attn-kata grade", attempt, options]))
        if self._airy:
            self._page.blank()
        self._page.line(f"{', '.join(said) or 'The whole report'}: {grade} --full")
        if advice:
            terminal.next_command(self._page, self._report, options)
