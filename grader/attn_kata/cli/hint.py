"""`attn-kata hint`: the staged hints, one at a time."""

from __future__ import annotations

import click

from attn_kata import catalog, hints, workspace
from attn_kata.cli import mock_interview
from attn_kata.cli.arguments import kata_argument
from attn_kata.cli.output import emit, paragraph, warn
from attn_kata.history import History


@click.command("hint")
@kata_argument()
@click.option("--number", type=click.IntRange(min=1), help="Show this hint instead of the next one.")
def command(kata: str | None, number: int | None) -> None:
    """Give the next hint for KATA: about the last mistake, if it has one. None is the code."""
    mock_interview.refuse_while_running("hint", "hints")
    history = History(warn)
    found = catalog.find(kata) if kata else workspace.current(history)
    count = len(found.hints)
    if number is not None and number > count:
        raise click.UsageError(f"{found.slug} has {count} hints; there is no number {number}.")
    hint = hints.following(found, history, number)

    after = f"The next hint: attn-kata hint {found.slug}"
    if not hint.left:
        after = (
            f"That was the last hint. To read the first again: attn-kata hint {found.slug} --number 1\n"
            f"To stop here and see the reference: attn-kata solution {found.slug} --give-up"
        )
    emit(f"{hints.title(found, hint)}\n\n{paragraph(hint.text, '  ')}\n\n{after}")
