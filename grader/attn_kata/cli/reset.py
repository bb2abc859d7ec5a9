"""`attn-kata reset`: begin anew, and lose nothing."""

from __future__ import annotations

import click

from attn_kata import catalog, stub, workspace
from attn_kata.cli import signals
from attn_kata.cli.arguments import KATA, level_option
from attn_kata.cli.output import emit, warn
from attn_kata.history import History


@click.command("reset")
@click.argument("kata", type=KATA, required=False)
@level_option(None, "How much the new stub says (default: as the old one).")
def command(kata: str | None, level: stub.Level | None) -> None:
    """Put a new stub in place of your attempt at KATA; the old file is kept beside it."""
    history = History(warn)
    found = catalog.find(kata) if kata else workspace.current(history)
    with signals.held():
        path, backup = workspace.reset(found, level, history)
        kept = f"Your old file is kept as {workspace.shown(backup)}" if backup else "There was no old file"
        emit(f"{workspace.shown(path)} is a new stub. {kept}.\nThen: attn-kata grade")
