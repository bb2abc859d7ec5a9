"""`attn-kata status`: passed katas, best times, the properties that fail most, and the next step."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import click

from attn_kata import catalog, practice
from attn_kata.catalog import Kata
from attn_kata.cli.output import emit, paragraph, warn, width
from attn_kata.history import Failing, History, Progress
from attn_kata.practice import Suggestion

WORST = 5


@click.command("status")
def command() -> None:
    """Show your progress and the next step.

    Shows when you passed each kata, your best time from start to pass, attempts, hints, the properties that fail most,
    and when to practise a kata again.
    """
    history = History(warn)
    known = history.current()
    current = known.kata if known else None
    now = datetime.now(timezone.utc)
    again = [_again(one, now) for one in practice.what_next(history, now=now)]
    emit(_text(catalog.katas(), history.progress(), history.failing(WORST), current, again))


def _text(
    katas: list[Kata], progress: dict[str, Progress], failing: list[Failing], current: str | None, again: list[str]
) -> str:
    passed = [kata.slug for kata in katas if progress.get(kata.slug, Progress()).passed_at]
    lines = [f"{len(passed)} of {len(katas)} katas passed", ""]
    longest = max(len(kata.slug) for kata in katas)
    lines.append(f"  {'kata':<{longest}}  passed      best    tries  hints")
    for kata in katas:
        done = progress.get(kata.slug, Progress())
        mark = ">" if kata.slug == current else " "
        when = f"{done.passed_at.astimezone():%Y-%m-%d}" if done.passed_at else "-"
        best = _minutes(done.best) if done.best is not None else "-"
        row = f"{mark} {kata.slug:<{longest}}  {when:<10}  {best:<6}  {done.attempts:>5}  {done.hints:>5}"
        given_up = "  saw the reference before passing" if done.gave_up else ""
        lines += [row + given_up] if len(row + given_up) <= width() else [row, "  " + given_up]
    if failing:
        lines += ["", "Properties that fail most"]
        said = (f"{worst.kata}: {worst.property} ({worst.failed} of {worst.graded} gradings)" for worst in failing)
        lines += [paragraph(line, "  ") for line in said]
    if again:
        lines += ["", "Practise again", *(paragraph(line, "  ") for line in again)]
    return "\n".join([*lines, "", _next(katas, passed, current)])


def _again(one: Suggestion, now: datetime) -> str:
    """`mha: values failed last time`, `sdpa: due in 3 days`."""
    if one.failing:
        more = f" and {len(one.failing) - 2} more" if len(one.failing) > 2 else ""
        return f"{one.kata}: {', '.join(one.failing[:2])}{more} failed last time"
    days = (one.due.astimezone().date() - now.astimezone().date()).days
    if one.is_due(now) or days <= 0:
        return f"{one.kata}: due now"
    return f"{one.kata}: due in {days} day{'' if days == 1 else 's'}"


def _next(katas: list[Kata], passed: list[str], current: str | None) -> str:
    if current is not None and current not in passed:
        return "Next: attn-kata grade"
    following = catalog.next_up(katas, passed)
    if following:
        return f"Next: attn-kata start {following.slug}"
    return "You passed every kata. To repeat one from the contract only: attn-kata reset KATA --level blank"


def _minutes(time: timedelta) -> str:
    seconds = round(time.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 6000:
        return f"{seconds // 60} min"
    return f"{seconds / 3600:.1f} h"
