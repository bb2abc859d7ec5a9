"""`attn-kata bundle`: what Gradescope or GitHub needs to grade with attn-kata."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from attn_kata import catalog
from attn_kata.cli.arguments import katas_argument
from attn_kata.cli.output import warn
from attn_kata.files import shown


def _out(default: str) -> Callable[[Any], Any]:
    return click.option("--out", type=click.Path(path_type=Path), default=default, show_default=True, metavar="FILE")


@click.group("bundle")
def command() -> None:
    """Write what Gradescope or GitHub needs to grade with attn-kata."""


@command.command("gradescope")
@katas_argument("KATA ...")
@_out("autograder.zip")
@click.option(
    "--rubric", type=click.Path(path_type=Path), metavar="FILE", help="Points for mistakes and groups (TOML)."
)
def gradescope(katas: tuple[str, ...], out: Path, rubric: Path | None) -> None:
    """Write the zip that Gradescope asks for as an autograder. Students hand in one file for each KATA."""
    from attn_kata.classroom import bundles, mistakes
    from attn_kata.report import rubric as rubrics

    if rubric is not None:
        rubrics.load(rubric, mistakes.ids())
    bundles.write(out, bundles.gradescope([catalog.find(name) for name in katas], rubric))
    warn(f"Wrote '{shown(out)}'. Upload it as the autograder of a programming assignment of 100 points.")


@command.command("github")
@katas_argument("KATA ...")
@_out(".github/workflows/attn-kata.yml")
def github(katas: tuple[str, ...], out: Path) -> None:
    """Write a workflow that grades every push. It expects the file KATA.py at the top of the repository."""
    from attn_kata.classroom import bundles

    bundles.write(out, bundles.github([catalog.find(name) for name in katas]).encode())
    warn(f"Wrote '{shown(out)}'. Commit it to the repository that students start from.")
