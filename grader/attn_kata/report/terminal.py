"""The whole report for a terminal: the verdict, what is wrong, what holds, and the next command.

It works in 80 columns and without colour. Text from the attempt is shown as plain text, never as markup. `folded` is the
short form.
"""

from __future__ import annotations

import shlex
from itertools import groupby

from rich.text import Text

from attn_kata.report import reading
from attn_kata.report.matrices import picture
from attn_kata.report.model import Finding, Report
from attn_kata.report.page import BODY, Page
from attn_kata.report.plain import capped, one_line, plain
from attn_kata.report.summary import (
    MESSAGE_CHARACTERS,
    MESSAGE_LINES,
    counts,
    diagnosis_lead,
    failing,
    is_ready_made,
    listed,
    more_lines,
    not_graded,
    picture_title,
    place,
    sizes,
    skipped_because,
    verdict,
)

PICTURE_LINES = 24  # for all pictures together, but the first is always drawn
OUTPUT_LINES = 20
OUTPUT_CHARACTERS = 2_000

_STYLES = {"passed": "bold green", "failed": "bold red", "ungraded": "bold yellow"}
MARKS = {"failed": ("FAIL", "bold red"), "errored": ("ERROR", "bold magenta")}
_PICTURE = 4  # columns before a picture


def render(
    report: Report,
    *,
    width: int = 80,
    color: bool = False,
    source: bytes = b"",
    advice: bool = True,
    options: str = "",
) -> str:
    """The report as text of `width` columns, in colour with `color`, and ending in the next command with `advice`.

    `source` is not shown: the user has it open. `options` are added to the next `grade` command.
    """
    page = Page(width=width, color=color)
    _verdict(page, report)
    if report.reading is not None:
        reading.write(page, report.reading)
    if report.outcome == "ungraded":
        _ungraded(page, report)
    elif not report.not_written:
        first = failing(report)[:1]
        leads = [finding for finding in first if is_ready_made(finding)]  # it matters more than any mistake
        _failures(page, leads, 0)
        _diagnosis(page, report)
        room = _weights(page, report)
        _findings(page, report, room, leads)
        if report.ungraded_because:
            _ungraded(page, report)
    _attempt_output(page, report)
    notes(page, report)
    if advice:
        page.blank()
        if report.diagnosis:  # repeated, because it has scrolled away
            mistake = report.diagnosis[0].mistakes[0]
            page.line((f"At the top: {one_line(mistake.title)}. More: attn-kata explain {mistake.id}", "bold"))
        next_command(page, report, options)
    return "\n".join(page.lines()) + "\n"


def _verdict(page: Page, report: Report) -> None:
    word, style = verdict(report), "bold yellow" if report.not_written else _STYLES[report.outcome]
    what = f"  {one_line(report.attempt)}  {report.seconds.get('total', 0.0):.1f} s"
    said = counts(report)
    if report.not_written:
        said = "Everything still raises NotImplementedError: there is nothing to grade yet."
    if report.outcome == "ungraded":
        said = ""
    elif len(word) + 2 + len(report.kata) + len(what) + 3 + len(said) <= page.width:
        what, said = f"{what}   {said}", ""
    page.line((word, style), "  ", (report.kata, "bold"), what)
    if said:
        page.line(said)


def _ungraded(page: Page, report: Report) -> None:
    page.section()
    lines, left_out = capped(not_graded(report), lines=MESSAGE_LINES, characters=MESSAGE_CHARACTERS)
    for line in lines:
        page.line(line)
    _left_out(page, left_out)


def _diagnosis(page: Page, report: Report) -> None:
    if not report.diagnosis:
        return
    page.section("Diagnosis")
    page.line(diagnosis_lead(report))
    for found in report.diagnosis:
        for number, mistake in enumerate(found.mistakes):
            page.blank()
            also = "and: " if number else ""
            page.line(also, (one_line(mistake.title), "bold red"), (f"  ({one_line(mistake.id)})", "dim"), indent=2)
            page.line(plain(mistake.explanation), indent=4)
            if mistake.line is not None:
                source = f":  {one_line(mistake.source_line)}" if mistake.source_line else ""
                page.line((place(mistake), "bold"), source, indent=4)
            page.line(("ask yourself: ", "bold"), plain(mistake.question), indent=4)


def _weights(page: Page, report: Report) -> int:
    """The first picture of the attention weights; returns how many lines of pictures may still be drawn."""
    if not report.pictures:
        return PICTURE_LINES
    drawn = picture(report.pictures[0], page.width - _PICTURE)
    page.section(picture_title(report.pictures[0]))
    page.drawing(drawn, indent=_PICTURE)
    return PICTURE_LINES - len(drawn)


def _findings(page: Page, report: Report, room: int, shown: list[Finding]) -> None:
    core = [finding for finding in report.findings if finding.tier == "core"]
    edge = [finding for finding in report.findings if finding.tier == "edge"]
    room = _failures(page, [finding for finding in failing(report) if finding not in shown], room)
    _others(page, core)
    if edge:
        page.section("Beyond the bar (never decides)")
        _failures(page, edge, room, first=True)
        _others(page, edge, first=all(finding.outcome in ("passed", "skipped") for finding in edge))


def _failures(page: Page, findings: list[Finding], room: int, *, first: bool = False) -> int:
    """Every failed or errored finding; returns how many more lines of pictures may be drawn."""
    for finding in findings:
        if finding.outcome not in MARKS:
            continue
        if not first:
            page.blank()
        first = False
        _failure(page, finding)
        drawn = picture(finding.example, page.width - _PICTURE) if finding.example else []
        if drawn and (room == PICTURE_LINES or len(drawn) <= room):
            room -= len(drawn)
            page.blank()
            page.drawing(drawn, indent=_PICTURE)
    return room


def _failure(page: Page, finding: Finding) -> None:
    mark, style = MARKS[finding.outcome]
    claim = plain(finding.claim)
    name = one_line(finding.property)
    head = f"{mark.ljust(BODY)}{name}"
    if len(head) + 2 + len(claim) <= page.width:
        page.line((mark.ljust(BODY), style), (name, "bold"), f"  {claim}")
    else:
        page.line((mark.ljust(BODY), style), (name, "bold"))
        page.line(claim, indent=BODY)

    case = sizes(finding)
    message, left_out = capped(finding.message or "", lines=MESSAGE_LINES, characters=MESSAGE_CHARACTERS)
    if case and message and BODY + len(case) + 3 + len(message[0]) <= page.width:
        message[0] = f"{case}   {message[0]}"
    elif case:
        message.insert(0, case)
    for line in message:
        page.line(line, indent=BODY)
    _left_out(page, left_out, indent=BODY)
    if finding.look_at:
        page.line(("look at ", "bold"), plain(finding.look_at), indent=BODY)


def _others(page: Page, findings: list[Finding], *, first: bool = False) -> None:
    """The skipped properties, by reason, and those that hold: names only."""
    holds = {finding.property for finding in findings if finding.outcome == "passed"}
    skipped: dict[str, list[str]] = {}
    for finding in findings:
        if finding.outcome == "skipped":
            skipped.setdefault(skipped_because(finding, holds), []).append(finding.property)
    passed = [finding.property for finding in findings if finding.outcome == "passed"]
    if (skipped or passed) and not first:
        page.blank()
    for because, names in skipped.items():
        page.hanging(("SKIP", "bold yellow"), Text.assemble(listed(names), (f"  ({because})", "dim")))
    if passed:
        page.hanging(("PASS", "bold green"), listed(passed))


def printed(report: Report) -> str:
    """What the attempt printed, with equal lines counted: a print in forward repeats on every call."""
    every = report.attempt_output.rstrip().split("\n")
    counted = [(line, sum(1 for _ in same)) for line, same in groupby(every)]
    return "\n".join(f"{line}   ({count} times)" if count > 1 and line else line for line, count in counted)


def _attempt_output(page: Page, report: Report) -> None:
    lines, left_out = capped(printed(report), lines=OUTPUT_LINES, characters=OUTPUT_CHARACTERS)
    if not lines:
        return
    page.section("Printed by your code")
    for line in lines:
        page.line(line, indent=2)
    _left_out(page, left_out, indent=2)


def _left_out(page: Page, count: int, *, indent: int = 0) -> None:
    if count:
        page.line((more_lines(count), "dim"), indent=indent)


def notes(page: Page, report: Report) -> None:
    """What else there is to know about this grading."""
    isolation = report.isolation
    every = [f"Note: {plain(note)}" for note in report.notes]
    if isolation.tier < 1 and report.outcome != "ungraded":
        missing = " ".join(map(one_line, isolation.notes))
        every.append(f"Isolation: tier {isolation.tier}, for your own code only. {missing}".rstrip())
    if every:
        page.blank()
        for note in every:
            page.line((note, "dim"))


_KEPT_BY_AN_ADAPTER = {
    "names",
    "takes a config",
    "fused",
    "one layer per head",
    "returns a tuple",
    "sizes at module level",
}


def next_command(page: Page, report: Report, options: str) -> None:
    """What to type next."""
    attempt = shlex.quote(one_line(report.attempt))
    grade = f"attn-kata grade {attempt} {options}".rstrip()
    if report.part and report.outcome == "passed":
        text = f"Next: {grade} (all properties)"
    elif report.outcome == "passed" and report.reading is not None:
        text = f"Next: attn-kata start {report.kata}"
        if set(report.reading["departures"]) <= _KEPT_BY_AN_ADAPTER:  # with others, the contract alone would fail it
            text = f"Next: {grade} --write-adapter FILE (your code as an attempt), attn-kata start {report.kata}"
    elif report.outcome == "passed":
        text = f"Next: attn-kata solution {report.kata} (the reference beside your code), attn-kata list"
    elif report.not_written:
        text = f"Next: write it, then {grade} (stuck: attn-kata hint {report.kata})"
    elif report.outcome == "ungraded":
        text = f"Next: fix this, then {grade}"
    else:
        text = f"Next: change it, then {grade} (stuck: attn-kata hint {report.kata})"
    page.line((text, "bold"))
