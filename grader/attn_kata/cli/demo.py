"""`attn-kata demo`: what a report looks like, on an attempt with a real mistake and on the reference."""

from __future__ import annotations

import click

from attn_kata import catalog
from attn_kata.cli import engine
from attn_kata.cli.output import color, emit, paragraph, width
from attn_kata.errors import OwnError
from attn_kata.report.formats import renderer
from attn_kata.workspace import read

KATA = "mha"
WRONG = "scale_embed_dim.py"


@click.command("demo")
def command() -> None:
    """Grade a shipped attempt with a real mistake, then the reference. Takes seconds; nothing is kept."""
    kata = catalog.find(KATA)
    wrong, right = kata.folder / "wrong" / WRONG, kata.solution
    sources = read(wrong), read(right)
    with engine.started() as running:
        render = renderer("terminal")  # while torch loads

        emit(paragraph(f"First an attempt at {KATA} with a mistake that people really make ({WRONG}).") + "\n")
        failed = running.grade(KATA, sources[0], attempt=WRONG)
        emit(render(failed, width=width(), color=color()))

        emit(paragraph(f"Now the reference, {right.name}, graded in the same way.") + "\n")
        passed = running.grade(KATA, sources[1], attempt=right.name)
        emit(render(passed, width=width(), color=color()))
    if (failed.outcome, passed.outcome) != ("failed", "passed"):
        raise OwnError("The demo's first attempt must fail and its second must pass: this installation is damaged.")
    emit("Your turn: attn-kata start sdpa")
