"""`attn-kata start`: the stub to write in, or a notebook with the stubs of several katas."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from attn_kata import catalog, stub, workspace
from attn_kata.cli.arguments import katas_argument, level_option
from attn_kata.cli.output import emit, warn
from attn_kata.errors import UsageError
from attn_kata.history import History


@click.command("start")
@katas_argument("KATA")
@level_option("standard", "How much the stub says: steps and shapes, steps, or the contract only.")
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), default=".", help="Where to write it (default: here)."
)
@click.option(
    "--notebook", is_flag=True, help="Write katas.ipynb instead: one section for each KATA, graded in Jupyter."
)
def command(katas: tuple[str, ...], level: stub.Level, folder: Path, notebook: bool) -> None:
    """Write the stub of KATA, with its contract in full. Never writes over a file.

    With --notebook, name one kata or several: attn-kata start --notebook sdpa mha
    """
    if len(katas) > 1 and not notebook:
        together = " ".join(map(shlex.quote, katas))
        raise UsageError(
            f"attn-kata start takes one kata at a time, not {len(katas)}.",
            next_step=f"All in one notebook: attn-kata start --notebook {together}",
        )
    found = list({kata.slug: kata for kata in map(catalog.find, katas)}.values())
    if notebook:
        path = workspace.start_notebook(found, folder, level, History(warn))
        titles = ", ".join(kata.slug for kata in found)
        emit(
            f"{workspace.shown(path)}: {titles}.\n"
            f"Open it in Jupyter: jupyter lab {shlex.quote(workspace.shown(path))}\n"
            f"It needs the magics: pip install 'attn-kata[notebook]'"
        )
        return
    path = workspace.start(found[0], folder, level, History(warn))
    name = workspace.shown(path)
    emit(
        f"{name}: {found[0].title}, about {found[0].minutes} minutes.\n"
        f"Read the contract at its top and write it in your editor. Then: attn-kata grade\n"
        f"Stuck: attn-kata hint"
    )
