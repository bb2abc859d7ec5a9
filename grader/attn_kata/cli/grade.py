"""`attn-kata grade`: which properties hold, and which mistake was made."""

from __future__ import annotations

import math
from pathlib import Path

import click

from attn_kata import catalog, workspace
from attn_kata.cli import engine, mock_interview, stranger
from attn_kata.cli.arguments import attempt_argument, complete_kata
from attn_kata.cli.destination import Destination
from attn_kata.cli.output import waiting, warn
from attn_kata.history import History
from attn_kata.report.formats import FORMATS
from attn_kata.report.untrusted import without_hidden_inputs

DEFAULT_SECONDS = 60.0
MOST_SECONDS = 86_400.0


def _seconds(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not (math.isfinite(value) and 0 < value <= MOST_SECONDS):
        raise click.BadParameter(f"{value:g} is not a time between 0 and {MOST_SECONDS:g} seconds.", ctx, param)
    return value


@click.command("grade")
@attempt_argument()
@click.option(
    "--kata",
    metavar="KATA",
    shell_complete=complete_kata,
    help="The kata that FILE is an attempt at, where its name or header do not say so.",
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="terminal", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Write the report into this file.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="For the random inputs.  [default: 0; drawn with --untrusted]"
)
@click.option(
    "--timeout",
    type=float,
    default=DEFAULT_SECONDS,
    show_default=True,
    callback=_seconds,
    metavar="SECONDS",
    help="For the whole grading; a single call has at most 10.",
)
@click.option(
    "--property", "properties", multiple=True, metavar="NAME", help="Only this one and what it needs; repeat."
)
@click.option(
    "--tier",
    type=click.IntRange(0, 2),
    help="Isolation: 0 for your own code, 1 against code that cheats or harms, 2 in namespaces.  [default: 1 on Linux]",
)
@click.option(
    "--untrusted",
    is_flag=True,
    help="FILE is another person's: not below tier 1, nothing of the hidden inputs is shown, and nothing is remembered.",
)
def command(
    attempt: str | None,
    kata: str | None,
    form: str,
    output: Path | None,
    seed: int | None,
    timeout: float,
    properties: tuple[str, ...],
    tier: int | None,
    untrusted: bool,
) -> int:
    """Grade your attempt: the current kata's, that of KATA, or FILE.

    Exits with 0 when all core properties hold, 1 when some do not, 3 when the attempt could not be graded.
    """
    mock_interview.unless_running("grade", "findings of hidden tests")
    history = History(warn)
    target = workspace.resolve(attempt, kata, history)
    source = workspace.read(target.path)
    for name in properties:
        catalog.check_property(target.kata, name)
    # What to type next is for whoever wrote the file, and has to name the kata where nothing else did.
    options = f"--kata {target.kata.slug}" if kata and attempt else ""
    destination = Destination(output, form, attempt=target.path, advice=not untrusted, options=options)
    with engine.started(tier) as running, stranger.refused_below_tier_1(untrusted, tier):
        destination.prepare()  # while torch loads
        with waiting("Grading … (Ctrl-C stops)"):
            report = running.grade(
                target.kata.slug,
                source,
                attempt=target.name,
                seed=stranger.seed(untrusted, seed),
                timeout=timeout,
                properties=properties,
                least_tier=stranger.LEAST_TIER if untrusted else 0,
            )
    if untrusted:
        report = without_hidden_inputs(report)
    elif not report.not_written:
        history.record(report, target.path, whole=not properties)
    destination.write(report, source)
    return report.exit_code
