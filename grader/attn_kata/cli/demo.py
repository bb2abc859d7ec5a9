"""`attn-kata demo`: the report of an attempt with a real mistake, then the report of the reference."""

from __future__ import annotations

import click

from attn_kata import catalog, specimens
from attn_kata.cli import engine
from attn_kata.cli.output import color, emit, width
from attn_kata.errors import OwnError
from attn_kata.workspace import read

KATA = "mha"
WRONG = "wrong/scale_embed_dim"


@click.command("demo")
def command() -> None:
    """Show two reports: an attempt with a mistake, then the reference.

    Both come with attn-kata. Grading them takes seconds, and nothing is saved.
    """
    kata = catalog.find(KATA)
    wrong, right = specimens.find(kata.folder, WRONG), kata.solution
    sources = wrong.source().encode(), read(right)
    with engine.started() as running:
        from attn_kata.report import folded  # rich is imported while torch loads

        emit(f"First, an attempt at {KATA} with a common mistake.\n\n")
        failed = running.grade(KATA, sources[0], attempt=f"{wrong.name}.py")
        emit(folded.render(failed, width=width(), color=color(), source=sources[0], advice=False) + "\n")

        emit("Now the reference, graded in the same way.\n\n")
        passed = running.grade(KATA, sources[1], attempt=right.name)
        emit(folded.render(passed, width=width(), color=color(), advice=False) + "\n")
    if (failed.outcome, passed.outcome) != ("failed", "passed"):
        raise OwnError("The demo's first attempt must fail and its second must pass. This installation is damaged.")
    emit("Your turn: attn-kata start sdpa")
