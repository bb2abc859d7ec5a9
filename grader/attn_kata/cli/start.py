"""`attn-kata start`: the stub to write in."""

from __future__ import annotations

from pathlib import Path

import click

from attn_kata import catalog, stub, workspace
from attn_kata.cli.arguments import kata_argument, level_option
from attn_kata.cli.output import emit, warn
from attn_kata.history import History


@click.command("start")
@kata_argument(required=True)
@level_option("standard", "How much the stub says: steps and shapes, steps, or the contract only.")
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), default=".", help="Where to write it (default: here)."
)
def command(kata: str, level: stub.Level, folder: Path) -> None:
    """Write the stub of KATA, with its contract in full. Never writes over a file."""
    found = catalog.find(kata)
    path = workspace.start(found, folder, level, History(warn))
    name = workspace.shown(path)
    emit(
        f"{name}: {found.title}, about {found.minutes} minutes.\n"
        f"Read the contract at its top and write it in your editor. Then: attn-kata grade\n"
        f"Stuck: attn-kata hint"
    )
