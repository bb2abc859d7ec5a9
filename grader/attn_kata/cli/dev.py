"""`attn-kata dev`: for those who write katas."""

from __future__ import annotations

import click

from attn_kata.cli.arguments import complete_kata
from attn_kata.cli.output import emit


@click.group(short_help="For authors: write, check and show katas.")
def dev() -> None:
    """For authors of katas. CONTRIBUTING.md says how a kata is written."""


@dev.command()
@click.argument("slug")
def new(slug: str) -> None:
    """Write the folder of a new kata, with a TODO wherever you have to write. SLUG is its name for ever."""
    from attn_kata.authoring import new as new_kata
    from attn_kata.workspace import shown

    for path in new_kata.write(slug):
        emit(shown(path))
    emit(f"\nWrite what each TODO asks for; CONTRIBUTING.md says what good means. Then: attn-kata dev check {slug}")


@dev.command()
@click.argument("names", metavar="[KATA]...", nargs=-1)
@click.option("--matrix", is_flag=True, help="Also print which wrong attempt and which mistake breaks which property.")
def check(names: tuple[str, ...], matrix: bool) -> None:
    """Hold katas to the rules: the reference and right/ pass, stubs and wrong/ fail as they say. All where none is named."""
    from attn_kata import catalog
    from attn_kata.authoring import rules
    from attn_kata.authoring.workbench import Workbench
    from attn_kata.engine.client import Engine

    chosen = [rules.find(name) for name in names] or catalog.katas()
    failed = False
    with Engine() as engine, Workbench() as workbench:
        for kata in chosen:
            result = rules.check(kata, engine, workbench, whole=matrix)
            failed = failed or bool(result.problems)
            click.echo(f"{kata.slug}: {result.graded} graded, {_count(result.problems)}")
            for problem in result.problems:
                click.echo(f"  - {problem}")
            if matrix:
                for name, killers in result.broken.items():
                    click.echo(f"  {name:<32} {len(killers):>3}  {', '.join(killers)}")
                for mistake, properties in rules.kill_matrix(kata).items():
                    click.echo(f"  {mistake:<32} {len(properties):>3}  {', '.join(sorted(properties)) or 'SURVIVES'}")
    raise SystemExit(1 if failed else 0)


@dev.command()
@click.argument("names", metavar="[KATA]...", nargs=-1)
def examples(names: tuple[str, ...]) -> None:
    """Write examples.toml, which `explain` shows, anew from the wrong attempts of katas. All where none is named."""
    from attn_kata import catalog
    from attn_kata.authoring import examples, rules
    from attn_kata.workspace import shown

    for kata in [rules.find(name) for name in names] or catalog.katas():
        emit(shown(examples.write(kata)))


@dev.command()
@click.argument("kata", shell_complete=complete_kata)
@click.argument("name", required=False)
def show(kata: str, name: str | None) -> None:
    """Print the source of NAME, a right or wrong attempt of KATA. Without NAME: what they are called."""
    from attn_kata import specimens
    from attn_kata.authoring import rules

    folder = rules.find(kata).folder
    if name is None:
        emit("\n".join(specimen.title for specimen in specimens.read(folder)))
    else:
        emit(specimens.find(folder, name).source())


@dev.command()
@click.argument("part", type=click.Choice(["stages", "mistakes", "formulas"]))
def library(part: str) -> None:
    """List what a kata can be made of: stages of a pipeline, ids of mistakes, or formulas of numeric follow-ups."""
    from attn_kata.authoring import library

    for name, said in library.PARTS[part]():
        emit(f"{name:<34} {said}")


def _count(problems: list[str]) -> str:
    return f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"


command = dev
