"""`attn-kata reset`: start again with a new stub, and keep the old file."""

from __future__ import annotations

import click

from attn_kata import catalog, stub, workspace
from attn_kata.cli import signals
from attn_kata.cli.arguments import kata_argument, level_option
from attn_kata.cli.output import emit, warn
from attn_kata.history import History


@click.command("reset")
@kata_argument()
@level_option(None, "How much the new stub says (default: the level of the old one).")
def command(kata: str | None, level: stub.Level | None) -> None:
    """Start KATA again with a new stub; your old file is kept.

    The old file gets a number in its name and stays in the same folder.
    """
    history = History(warn)
    found = catalog.find(kata) if kata else workspace.current(history)
    with signals.held():
        path, backup = workspace.reset(found, level, history, named=kata is not None)
        kept = f"Your old file is now {workspace.shown(backup)}" if backup else "There was no old file"
        emit(f"{workspace.shown(path)} is a new stub. {kept}.\nNext: attn-kata grade")
