"""`attn-kata list`: the katas by level, and when each was passed."""

from __future__ import annotations

import textwrap
from itertools import groupby

import click

from attn_kata import catalog
from attn_kata.catalog import Kata
from attn_kata.cli.arguments import json_option
from attn_kata.cli.output import emit, warn, width
from attn_kata.history import History, Progress


@click.command("list", short_help="Show the katas by level, and when you passed them.")
@json_option()
def command(as_json: bool) -> None:
    """Show the katas by level, with their minutes and when you passed them."""
    history = History(warn)
    known = history.current()
    current = known.kata if known else None
    emit((_json if as_json else _text)(catalog.katas(), history.progress(), current))


def _text(katas: list[Kata], progress: dict[str, Progress], current: str | None) -> str:
    longest = max(len(kata.slug) for kata in katas)
    dates = any(done.passed_at for done in progress.values())
    lines: list[str] = []
    for level, members in groupby(katas, key=lambda kata: kata.level):
        head = f"Level {level}"
        lines += ["", head] if lines else [f"{head:<{longest + 12}}passed" if dates else head]
        for kata in members:
            passed_at = progress.get(kata.slug, Progress()).passed_at
            mark = ">" if kata.slug == current else " "
            first = f"{mark} {kata.slug:<{longest}}  {kata.minutes:>2} min  "
            if dates:
                first += f"{passed_at.astimezone():%Y-%m-%d}  " if passed_at else " " * 12
            basis = f"; after {', '.join(kata.after)}" if kata.after else ""
            lines += textwrap.wrap(
                kata.summary + basis, width(), initial_indent=first, subsequent_indent=" " * len(first)
            )
    following = catalog.next_up(katas, [slug for slug, done in progress.items() if done.passed_at])
    lines.append("")
    if current:
        lines.append("> marks the current kata. Grade it: attn-kata grade")
    if following and following.slug != current:
        lines.append(f"Start a kata: attn-kata start {following.slug}")
    return "\n".join(line.rstrip() for line in lines)


def _json(katas: list[Kata], progress: dict[str, Progress], current: str | None) -> str:
    import json

    def row(kata: Kata) -> dict[str, object]:
        done = progress.get(kata.slug, Progress())
        return {
            "kata": kata.slug,
            "title": kata.title,
            "level": kata.level,
            "minutes": kata.minutes,
            "summary": kata.summary,
            "after": list(kata.after),
            "current": kata.slug == current,
            "passed_at": done.passed_at.isoformat() if done.passed_at else None,
            "attempts": done.attempts,
        }

    return json.dumps([row(kata) for kata in katas], indent=2)
