"""`attn-kata solution`: the reference beside the attempt, after a pass or with --give-up."""

from __future__ import annotations

from pathlib import Path

import click

from attn_kata import catalog, sources, workspace
from attn_kata.catalog import Kata
from attn_kata.cli import mock_interview
from attn_kata.cli.arguments import kata_argument
from attn_kata.cli.output import color, emit, terminal_columns, warn
from attn_kata.errors import UsageError
from attn_kata.history import History


@click.command("solution")
@kata_argument()
@click.option("--give-up", is_flag=True, help="Show it before you have passed; this is recorded.")
def command(kata: str | None, give_up: bool) -> None:
    """Show the reference for KATA beside your attempt.

    Before you have passed, this needs --give-up, which is recorded.
    """
    mock_interview.refuse_while_running("solution", "references")
    history = History(warn)
    found = catalog.find(kata) if kata else workspace.current(history)
    if not workspace.may_see_reference(found, history, give_up=give_up):
        raise UsageError(
            f"You have not passed {found.slug} yet, so the reference is not shown.",
            next_step=f"A hint: attn-kata hint {found.slug}. The reference: attn-kata solution {found.slug} --give-up",
        )
    yours = history.passed_path(found.slug)
    if yours is None or not yours.is_file():
        yours = workspace.locate(found, history)
    emit(_beside(found, yours))


def _beside(kata: Kata, attempt: Path | None) -> str:
    from attn_kata.report.sources import Source, side_by_side

    reference = Source(title=f"Reference: {kata.solution.name}", code=workspace.read(kata.solution))
    shown = [reference]
    if attempt is not None and attempt.is_file():
        yours = Source(title=f"Yours: {workspace.shown(attempt)}", code=sources.read(attempt).code)
        shown = [yours, reference]
    return side_by_side(shown, width=terminal_columns(), color=color())
