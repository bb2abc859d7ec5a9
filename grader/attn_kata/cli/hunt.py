"""`attn-kata hunt`: a file with mistakes to find and mend."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from attn_kata import workspace
from attn_kata.cli import mock_interview, rounds
from attn_kata.cli.arguments import kata_argument
from attn_kata.cli.output import emit, warn
from attn_kata.history import History
from attn_kata.rounds import hunt
from attn_kata.rounds.record import Record


@click.command("hunt")
@kata_argument()
@rounds.bugs_option
@click.option("--minutes", type=click.FloatRange(1, 480), help="Your time. `grade` says whether you kept within it.")
@rounds.options
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), default=".", help="Where to write it (default: here)."
)
def command(
    kata: str | None, bugs: int | None, minutes: float | None, all_katas: bool, seed: int | None, folder: Path
) -> None:
    """Write code that looks right and has mistakes: find them and mend them.

    It is an attempt at KATA, or at the current kata, with one to four known mistakes. Nothing says how many. `grade FILE`
    then says which you mended, which are left, and which are new.
    """
    mock_interview.refuse_while_running("hunt", "other code to look at")
    drawn = rounds.seed_of(seed)
    found = rounds.kata_of(kata, all_katas, drawn, History(warn))
    spoiled, _ = rounds.made(found, seed=drawn, bugs=bugs)
    path = hunt.write(found, spoiled, folder)
    name = workspace.shown(path)
    kept = Record(warn).hunt_begun(spoiled, path, minutes)
    limit = f" You have {minutes:g} minute{'' if minutes == 1 else 's'}." if minutes else ""
    then = f"Then: attn-kata grade {shlex.quote(name)}"
    emit(
        f"{name}: {found.title}. It looks right, but it has mistakes.{limit}\n"
        f"What it has to do is written at its top. Find the mistakes and mend them in your editor. {then}\n"
        f"The same hunt again: attn-kata hunt {found.slug}{f' --bugs {bugs}' if bugs else ''} --seed {drawn}"
    )
    if not kept:
        warn("`grade` will say what is wrong with the file, but not which mistakes you mended.")
