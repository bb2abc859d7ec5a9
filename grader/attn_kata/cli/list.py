"""`attn-kata list`: the katas in groups, what comes before which, and when each was passed."""

from __future__ import annotations

import textwrap

import click

from attn_kata import catalog, curriculum
from attn_kata.catalog import Kata
from attn_kata.cli.arguments import json_option
from attn_kata.cli.output import emit, warn, width
from attn_kata.history import History, Progress


@click.command("list", short_help="Show the katas in groups, and when you passed them.")
@json_option()
def command(as_json: bool) -> None:
    """Show the katas in groups, with their minutes, what to pass before, and when you passed them."""
    history = History(warn)
    known = history.current()
    current = known.kata if known else None
    emit((_json if as_json else _text)(catalog.katas(), history.progress(), current))


def _text(katas: list[Kata], progress: dict[str, Progress], current: str | None) -> str:
    longest = max(len(kata.slug) for kata in katas)
    passed = [slug for slug, done in progress.items() if done.passed_at]
    done = curriculum.behind(katas, passed)
    lines: list[str] = []
    for group, members in curriculum.groups(katas).items():
        lines += ["", group] if lines else [f"{group:<{longest + 12}}passed" if passed else group]
        for kata in members:
            passed_at = progress.get(kata.slug, Progress()).passed_at
            mark = ">" if kata.slug == current else " "
            first = f"{mark} {kata.slug:<{longest}}  {kata.minutes:>2} min  "
            if passed:
                first += f"{passed_at.astimezone():%Y-%m-%d}  " if passed_at else " " * 12
            before = curriculum.missing(kata, done) if kata.slug not in done else []
            said = f"{kata.summary} (after {', '.join(before)})" if before else kata.summary
            lines += textwrap.wrap(said, width(), initial_indent=first, subsequent_indent=" " * len(first))
    following = curriculum.following(katas, passed, besides=current)
    lines.append("")
    if current:
        lines.append("> marks the current kata. Grade it: attn-kata grade")
    if following:
        begin = "Begin here" if not passed and not current else "Start a kata"
        lines.append(f"{begin}: attn-kata start {following.slug}")
    return "\n".join(line.rstrip() for line in lines)


def _json(katas: list[Kata], progress: dict[str, Progress], current: str | None) -> str:
    import json

    def row(kata: Kata) -> dict[str, object]:
        done = progress.get(kata.slug, Progress())
        return {
            "kata": kata.slug,
            "title": kata.title,
            "level": kata.level,
            "group": kata.group,
            "prerequisites": list(kata.prerequisites),
            "minutes": kata.minutes,
            "summary": kata.summary,
            "current": kata.slug == current,
            "passed_at": done.passed_at.isoformat() if done.passed_at else None,
            "attempts": done.attempts,
        }

    return json.dumps([row(kata) for kata in katas], indent=2)
