"""A reviewed session for a terminal. It works in 80 columns and without colour; no text is read as markup."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from attn_kata.interview.moments import clock_text
from attn_kata.interview.session import STATE_NAMES
from attn_kata.report import terminal as report_terminal
from attn_kata.report.console import TextConsole
from attn_kata.report.model import Report

_VERDICT_STYLES = {"strong yes": "bold green", "yes": "green", "no": "red", "strong no": "bold red"}


def render(shown: Mapping[str, Any], *, width: int, color: bool) -> str:
    """The whole review."""
    console = TextConsole(width=width, color=color)
    page = _Page(console)
    _head(page, shown["interview"])
    if shown["scorecard"] is not None:
        _scorecard(page, shown["scorecard"])
        _spread(page, shown["spread"])
    if shown["practise"]:
        page.heading("What to practise")
        for line in shown["practise"]:
            page.line(line, indent=2)
    for one in shown["taken"]:
        _stage(page, one, width=width, color=color)
    _follow_ups(page, shown["follow_ups"])
    _timeline(page, shown["timeline"], shown["gaps"])
    number = shown["interview"]["id"]
    page.heading("Next")
    page.line(f"attn-kata interview export {number} --format html --output interview-{number}.html")
    page.line("  one page with all versions of the code and their diffs")
    page.line(f"attn-kata interview replay {number}")
    page.line("  plays the session again")
    if shown["interview"]["state"] == "review":
        page.line("attn-kata interview next    closes this session")
    return "\n".join(console.lines()) + "\n"


class _Page:
    def __init__(self, console: Console) -> None:
        self.console = console

    def heading(self, title: str) -> None:
        self.console.print()
        self.console.print(Text(title, style="bold"))

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        self.console.print(Padding(Text.assemble(*parts, overflow="fold"), (0, 0, 0, indent), expand=False))


def _head(page: _Page, interview: Mapping[str, Any]) -> None:
    katas = ", then ".join(
        stage["kata"] if stage["round"] == "write" else f"{stage['round']} {stage['kata']}"
        for stage in interview["stages"]
    )
    how = f"  ({interview['mode']}, {STATE_NAMES[interview['state']]})"
    page.line((f"Interview {interview['id']}: {interview['track']}", "bold"), how)
    if katas != interview["track"]:
        page.line(katas)
    used, of = clock_text(interview["used_seconds"]), clock_text(interview["minutes"] * 60)
    began = datetime.fromisoformat(interview["started"]).astimezone()
    page.line(f"{began:%Y-%m-%d %H:%M}, {used} of {of} used")


def _stage(page: _Page, one: Mapping[str, Any], *, width: int, color: bool) -> None:
    page.heading(f"{one['kata']} ({one['how']})")
    if one["report"] is None:
        page.line("Not graded yet.", indent=2)
        return
    report = Report.from_dict(dict(one["report"]))
    for line in report_terminal.render(report, width=width - 2, color=color, advice=False).splitlines():
        if not line:
            page.console.print()  # Padding would drop an empty line
            continue
        page.console.print(Padding(Text.from_ansi(line), (0, 0, 0, 2), expand=False), no_wrap=True, crop=False)
    if one["lint"]:
        page.line("Code quality", indent=2)
        for finding in one["lint"]:
            page.line(f"line {finding['line']}: {finding['says']}", indent=4)
    if one["diff"]:
        page.line("Diff from your code (-) to the reference (+)", indent=2)
        for line in one["diff"].splitlines():
            style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            page.line((line, style), indent=4)


def _follow_ups(page: _Page, every: list[Mapping[str, Any]]) -> None:
    if every:
        page.heading("Follow-up questions")
    for one in every:
        page.line(f"{one['place']}. {one['ask']}", indent=2)
        judged = {True: ("right", "green"), False: ("wrong", "red"), None: ("", "")}[one["right"]]
        page.line("yours: ", one["yours"] if one["yours"] is not None else "not answered", "  ", judged, indent=5)
        if one["answer"] is not None:
            page.line("answer: ", one["answer"], indent=5)
        if one["explain"]:
            page.line((one["explain"], "dim"), indent=5)
        for point in one["points"]:
            page.line(f"[{'x' if point['ticked'] else ' '}] {point['says']}", indent=5)
        if one["source"]:
            page.line(("source: " + one["source"], "dim"), indent=5)


def _timeline(page: _Page, points: list[Mapping[str, Any]], gaps: list[Mapping[str, Any]]) -> None:
    page.heading("Timeline")
    shown = [(point["at"], point) for point in points if point["kind"] not in ("created", "announced")]
    for at, point in shown:
        sign = "-" if at < 0 else " "
        held = f"  {point['held']} of {point['core']} core" if point["held"] is not None else ""
        page.line(f"{sign}{clock_text(abs(at)):>7}  {point['says']}{held}", indent=1)
        by_how: dict[str, list[str]] = {}
        for flip in point["flips"]:
            by_how.setdefault(flip["how"], []).append(flip["property"])
        for how, names in by_how.items():
            page.line((f"{how}: ", "red" if how == "broke" else "green"), ", ".join(names), indent=12)
    for gap in gaps:
        page.line(
            (f"no activity for {clock_text(gap['seconds'])} from {clock_text(max(0, gap['at']))} on", "dim"), indent=2
        )


def _scorecard(page: _Page, card: Mapping[str, Any]) -> None:
    page.console.print()
    page.line("Overall: ", (card["overall"], _VERDICT_STYLES[card["overall"]]), f"  (mean {card['mean']:.2f})")
    page.line((card["rule"], "dim"), indent=2)
    for note in card["notes"]:
        page.line(f"Note: {note}")
    page.heading("Scorecard")
    for one in card["dimensions"]:
        page.line((f"{one['score']} of 4  ", "bold"), (one["name"], "bold"), indent=2)
        for evidence in one["evidence"]:
            page.line(evidence, indent=10)
        page.line((one["rule"], "dim"), indent=10)
    if card["interviewer"]:
        page.heading("From your interviewer")
        for line in card["interviewer"]:
            page.line(line, indent=2)
    if card["self_reported"]:
        page.heading("Self-reported, not counted")
        for line in card["self_reported"]:
            page.line(line, indent=2)


def _spread(page: _Page, spread: list[Mapping[str, Any]]) -> None:
    if not spread or len(spread[0]["scores"]) < 2:
        return
    page.heading(f"The last {len(spread[0]['scores'])} sessions")
    longest = max(len(one["name"]) for one in spread)
    for one in spread:
        scores = one["scores"]
        page.line(
            f"{one['name']:<{longest}}  {' '.join(map(str, scores))}   from {scores[0]} to {scores[-1]}", indent=2
        )
