"""The screen of `watch` as lines of text: what changed, then the diagnosis, then what fails. Made for 80 by 24."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text

from attn_kata.report.console import TextConsole
from attn_kata.report.model import Finding, Report
from attn_kata.report.plain import capped, one_line, plain
from attn_kata.report.summary import (
    core_counts,
    diagnosis_lead,
    failing,
    listed,
    message,
    more_lines,
    not_graded,
    place,
    read_as,
    sizes,
    verdict,
)
from attn_kata.watch.session import WatchSession

KEYS = "g grade again  f full report  h hint  p prompt  n next kata  q quit"
PAGE_KEYS = "space, arrows: scroll   any other key: back"
_STYLES = {"passed": "bold green", "failed": "bold red", "ungraded": "bold yellow"}
_INDENT = 2
MOST_NOTES = 2  # of a reading; the full report has them all


@dataclass(frozen=True, kw_only=True)
class Page:
    """A text that covers the screen: a hint, the prompt or the full report. `top` is the first line shown."""

    title: str
    lines: list[str]
    top: int = 0


def draw(session: WatchSession, *, now: float, width: int, height: int, color: bool, notice: str = "") -> list[str]:
    """Exactly `height` lines of at most `width` columns."""
    writer = _Writer(width)
    _head(writer, session, now)
    if session.report is None:
        writer.blank()
        if session.fault is None:
            writer.add(Text("Save your file to grade it." if not session.grading else "Grading for the first time …"))
    else:
        _flips(writer, session)
        _report(writer, session.report)
    if session.fault is not None:
        writer.blank()
        writer.add(
            Text(f"This is a bug in attn-kata, not in your code: {one_line(str(session.fault))}", "bold magenta")
        )
    foot = [_state(session, notice), Text(KEYS, style="dim")]
    room = height - len(foot)
    body = writer.lines[:room]
    if len(writer.lines) > room:
        body[-1] = Text(f"{more_lines(len(writer.lines) - room + 1)}: press f", style="dim")
    body += [Text()] * (room - len(body))
    return _printed([*body, *foot], width, color)


def draw_page(page: Page, *, width: int, height: int, color: bool) -> list[str]:
    """A page as exactly `height` lines. They may contain our own colours."""
    room = height - 3
    shown = page.lines[page.top : page.top + room]
    more = len(page.lines) - page.top - len(shown)
    keys = PAGE_KEYS + (f"   {more_lines(more)}" if more > 0 else "")
    head = _printed([Text(page.title, style="bold"), Text()], width, color)
    foot = _printed([Text(keys, style="dim")], width, color)
    return [*head, *shown, *[""] * (room - len(shown)), *foot]


def scrolled(page: Page, by: int, height: int) -> Page:
    """The page scrolled down by `by` lines, at most to its end."""
    most = max(0, len(page.lines) - (height - 3))
    return Page(title=page.title, lines=page.lines, top=min(most, max(0, page.top + by)))


def wrapped(text: str, width: int) -> list[str]:
    """Any text as lines for a Page."""
    lines: list[str] = []
    for line in plain(text).split("\n"):
        indent = len(line) - len(line.lstrip())
        body = Text(line.strip(), overflow="fold").wrap(TextConsole(width=width), max(10, width - indent))
        lines += [" " * indent + part.plain.rstrip() for part in body] or [""]
    return lines


def markdown(text: str, width: int, *, color: bool) -> list[str]:
    """Our own Markdown text as lines for a Page."""
    from rich.markdown import Markdown

    console = TextConsole(width=width, color=color)
    console.print(Markdown(text))
    lines = console.lines()
    while lines and not lines[-1]:
        lines.pop()
    return lines


def clock(seconds: float) -> str:
    """`7:05`, `1:02:03`."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Writer:
    """Collects lines that are no wider than the screen."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[Text] = []
        self._console = TextConsole(width=width)

    def add(self, text: Text, *, indent: int = 0, most: int = 6) -> None:
        text.overflow = "fold"
        parts = list(text.wrap(self._console, max(10, self.width - indent)))
        for number, part in enumerate(parts[:most]):
            part.rstrip()
            last = number == most - 1 and len(parts) > most
            self.lines.append(
                Text.assemble(" " * indent, part, "…" if last and len(part) < self.width - indent else "")
            )

    def blank(self) -> None:
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())


def _head(writer: _Writer, session: WatchSession, now: float) -> None:
    time = clock(now - session.started)
    left = f"{session.kata.slug}  {one_line(session.name)}"
    room = writer.width - len(time) - 2
    left = left if len(left) <= room else left[: room - 1] + "…"
    head = Text.assemble((left[: len(session.kata.slug)], "bold"), left[len(session.kata.slug) :])
    head.append(" " * (writer.width - len(left) - len(time)) + time, style="dim")
    writer.lines.append(head)
    report = session.report
    if report is not None:
        word = verdict(report)
        style = "bold yellow" if report.not_written else _STYLES[report.outcome]
        said = "" if report.outcome == "ungraded" else f"  {core_counts(report)}"
        writer.add(Text.assemble((word, style), said))


def _flips(writer: _Writer, session: WatchSession) -> None:
    flips = session.flips
    if not (flips.now_hold or flips.now_fail):
        return
    writer.blank()
    if flips.now_hold:
        writer.add(Text.assemble(("now holds  ", "bold green"), listed(flips.now_hold)), most=3)
    if flips.now_fail:
        writer.add(Text.assemble(("now fails  ", "bold red"), listed(flips.now_fail)), most=3)


def _report(writer: _Writer, report: Report) -> None:
    writer.blank()
    if report.outcome == "ungraded":
        _not_graded(writer, report)
        return
    if report.not_written:
        writer.add(Text("Everything still raises NotImplementedError: there is nothing to grade yet."))
        return
    if report.hunt is not None:
        from attn_kata.rounds import hunt

        writer.add(Text(hunt.note(report.hunt), style="bold"))
        writer.blank()
    _reading(writer, report)
    _diagnosis(writer, report)
    core = failing(report)
    for finding in core[:1]:
        writer.blank()
        _first(writer, finding)
    if core[1:]:
        _names(writer, "FAIL ", "bold red", core[1:])
    if report.ungraded_because:
        writer.blank()
        _not_graded(writer, report)
    _names(writer, "BEYOND THE BAR (reported, never decides) ", "bold yellow", failing(report, "edge"))
    if report.passed and report.reading is not None:
        writer.blank()
        writer.add(Text(f"Code by other names is practice, and no pass of {report.kata}. n starts the next kata."))
    elif report.passed:
        writer.blank()
        writer.add(
            Text.assemble(
                "n starts the next kata; ", (f"attn-kata solution {report.kata}", "bold"), " shows the reference."
            )
        )


def _not_graded(writer: _Writer, report: Report) -> None:
    lines, _ = capped(not_graded(report), lines=12, characters=1_500)
    for line in lines:
        writer.add(Text(line))


def _reading(writer: _Writer, report: Report) -> None:
    lines = read_as(report)
    for number, line in enumerate(lines[: 1 + MOST_NOTES]):
        writer.add(Text(line, style="yellow" if number else "dim"), most=2 if number else 1)
    if lines:
        writer.blank()


def _diagnosis(writer: _Writer, report: Report) -> None:
    if not report.diagnosis:
        return
    if len(report.diagnosis) > 1 or len(report.diagnosis[0].mistakes) > 1:
        writer.add(Text(diagnosis_lead(report)))
    for found in report.diagnosis:
        for number, mistake in enumerate(found.mistakes):
            also = "and: " if number else ""
            title = Text.assemble(also, (one_line(mistake.title), "bold red"), (f"  ({one_line(mistake.id)})", "dim"))
            writer.add(title, most=2)
            writer.add(Text(plain(mistake.explanation)), indent=_INDENT, most=3)
            if mistake.line is not None:
                source = f":  {one_line(mistake.source_line)}" if mistake.source_line else ""
                writer.add(Text.assemble((place(mistake), "bold"), source), indent=_INDENT, most=1)
            writer.add(Text.assemble(("ask yourself: ", "bold"), plain(mistake.question)), indent=_INDENT, most=2)


def _first(writer: _Writer, finding: Finding) -> None:
    mark = "FAIL" if finding.outcome == "failed" else "ERROR"
    style = "bold red" if finding.outcome == "failed" else "bold magenta"
    writer.add(
        Text.assemble((f"{mark}  ", style), (one_line(finding.property), "bold"), f"  {plain(finding.claim)}"), most=3
    )
    case = sizes(finding)
    for number, line in enumerate(message(finding)[:4]):
        writer.add(Text(f"{case}   {line}" if case and number == 0 else line), indent=_INDENT, most=2)
    if finding.look_at:
        writer.add(Text.assemble(("look at ", "bold"), plain(finding.look_at)), indent=_INDENT, most=2)


def _names(writer: _Writer, head: str, style: str, findings: Iterable[Finding]) -> None:
    names = listed(finding.property for finding in findings)
    if names:
        writer.add(Text.assemble((head, style), names), most=2)


def _state(session: WatchSession, notice: str) -> Text:
    if session.missing:
        return Text(f"Waiting for the file: {one_line(session.missing)}", style="bold yellow")
    if notice:
        return Text(one_line(notice), style="bold")
    if session.grading:
        return Text("Grading …", style="bold")
    if session.report is not None:
        took = session.report.seconds.get("total", 0.0)
        printed = " Your prints: f." if session.report.attempt_output.strip() else ""
        return Text(f"Graded in {took:.1f} s, {session.gradings} so far. Save to grade.{printed}", style="dim")
    return Text("Waiting for a save.", style="dim")


def _printed(lines: list[Text], width: int, color: bool) -> list[str]:
    console = TextConsole(width=width, color=color)
    for line in lines:
        line.truncate(width, overflow="ellipsis")
        console.print(line, no_wrap=True, crop=True, overflow="ellipsis", soft_wrap=False)
    return console.lines()
