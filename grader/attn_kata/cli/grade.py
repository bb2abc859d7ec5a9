"""`attn-kata grade`: which properties hold, and which mistake breaks the others."""

from __future__ import annotations

import math
import time
from pathlib import Path

import click

from attn_kata import catalog, workspace
from attn_kata.cli import engine, mock_interview, untrusted_file
from attn_kata.cli.arguments import attempt_argument, complete_kata
from attn_kata.cli.destination import Destination
from attn_kata.cli.gradings import Gradings
from attn_kata.cli.output import waiting, warn
from attn_kata.cli.reading_options import ReadingOptions, reading_options
from attn_kata.history import History
from attn_kata.report.formats import FORMATS
from attn_kata.report.model import Report
from attn_kata.report.untrusted import without_hidden_inputs
from attn_kata.rounds import hunt
from attn_kata.rounds.record import Record

DEFAULT_SECONDS = 60.0
MOST_SECONDS = 86_400.0


def seconds(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """A time limit in seconds. Raises BadParameter."""
    if not (math.isfinite(value) and 0 < value <= MOST_SECONDS):
        raise click.BadParameter(f"{value:g} is not a time between 0 and {MOST_SECONDS:g} seconds.", ctx, param)
    return value


@click.command("grade")
@attempt_argument()
@click.option(
    "--kata",
    metavar="KATA",
    shell_complete=complete_kata,
    help="The kata of FILE, when its name, header and definitions do not say it.",
)
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="terminal", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--full", is_flag=True, help="Print every property and every picture.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the report to this file.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Seed of the random inputs.  [default: 0; random with --untrusted]",
)
@click.option(
    "--timeout",
    type=float,
    default=DEFAULT_SECONDS,
    show_default=True,
    callback=seconds,
    metavar="SECONDS",
    help="Limit for the whole grading; a single call has at most 10 seconds.",
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME",
    help="Grade only this property and those it needs. Repeatable.",
)
@reading_options
@click.option(
    "--tier",
    type=click.IntRange(0, 2),
    help="Isolation: 0 for your own code, 1 against cheating or harmful code, 2 adds namespaces.  [default: 1 on Linux]",
)
@click.option(
    "--untrusted",
    is_flag=True,
    help="For another person's FILE: needs tier 1, hides the hidden inputs, and saves nothing.",
)
def command(
    attempt: str | None,
    kata: str | None,
    form: str,
    as_json: bool,
    full: bool,
    output: Path | None,
    seed: int | None,
    timeout: float,
    properties: tuple[str, ...],
    tier: int | None,
    untrusted: bool,
    reading: ReadingOptions,
) -> int:
    """Grade your attempt at the current kata, at KATA, or in FILE.

    FILE is Python or a notebook (.ipynb). "-" is standard input: attn-kata grade - --kata mha < FILE

    FILE may be any code with attention: code by other names is read as it is, and the report says how. What it imports from
    files beside it is read with it.

    The exit code is 0 when all core properties hold, 1 when some do not, and 3 when the attempt could not be graded.
    """
    mock_interview.refuse_while_running("grade", "findings of hidden tests")
    history = History(warn)
    target = workspace.resolve(attempt, kata, history, reading.nearest)
    reading.check(target.kata)
    source = target.source(alone=untrusted)  # another person's file reads no file of this machine
    if target.told_by:
        warn(target.told_by)
    for name in properties:
        catalog.check_property(target.kata, name)
    record = Record(warn)
    begun = None if untrusted or properties else record.hunt_at(target.path, target.kata.slug)
    # The next command is for the author of the file. It must name the kata when the file does not.
    options = f"--kata {target.kata.slug}" if attempt and (kata or target.told_by) else ""
    destination = Destination(
        output,
        "json" if as_json else form,
        attempt=target.path,
        advice=not untrusted,
        options=options,
        full=full,
    )
    started = time.monotonic()
    with engine.started(tier) as running, untrusted_file.refused_below_tier_1(untrusted, tier):
        destination.prepare()  # while torch loads

        def graded(
            slug: str,
            flags: tuple[str, ...],
            asked: tuple[str, ...] = properties,
            seconds: float = timeout,
        ) -> Report:
            return running.grade(
                slug,
                source.code,
                attempt=target.name,
                seed=untrusted_file.seed(untrusted, seed),
                timeout=max(1.0, min(seconds, timeout - (time.monotonic() - started))),
                properties=asked,
                least_tier=untrusted_file.LEAST_TIER if untrusted else 0,
                reads=not (reading.strict or untrusted),
                flags=flags,
            )

        gradings = Gradings(target=target, source=source.code, reading=reading, options=options, graded=graded)
        with waiting("Grading … (Ctrl-C stops)"):
            report = gradings.first() if properties else gradings.every()
    target, destination.options = gradings.target, gradings.options
    report = source.located(report)
    if untrusted:
        report = without_hidden_inputs(report)
    elif begun is not None:  # mending somebody else's code does not pass the kata
        report = begun.judged(report, source.code)
        if report.hunt is not None:
            record.hunt_went(report.kata, report.hunt)
    elif not properties and hunt.is_hunt(source.code):
        warn("This is the file of a bug hunt, but not one that was written here: nothing is kept of this grading.")
    elif not report.not_written:
        history.record(report, target.path, whole=not properties)
    destination.write(report, source.code)
    if said := reading.write(report, source.code, target.kata):
        warn(said)
    return report.exit_code
