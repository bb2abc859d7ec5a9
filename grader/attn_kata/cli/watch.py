"""`attn-kata watch`: grade the attempt on every save."""

from __future__ import annotations

import functools
import itertools

import click

from attn_kata import workspace
from attn_kata.cli import engine, mock_interview
from attn_kata.cli.arguments import attempt_argument, complete_kata
from attn_kata.cli.output import color, emit, warn
from attn_kata.cli.reading_options import ReadingOptions, reading_options
from attn_kata.errors import UsageError
from attn_kata.history import History
from attn_kata.readings import inference


@click.command("watch")
@attempt_argument()
@click.option(
    "--kata",
    metavar="KATA",
    shell_complete=complete_kata,
    help="The kata of FILE, when its name, header and definitions do not say it.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed of the random inputs."
)
@functools.partial(reading_options, writes=False)
def command(attempt: str | None, kata: str | None, seed: int, reading: ReadingOptions) -> None:
    """Grade your attempt again on every save.

    It is the attempt at the current kata, at KATA, or in FILE, which is Python or a notebook. One screen shows what
    changed, the diagnosis and what fails. Keys: hint, prompt, full report, next kata, quit.
    """
    from attn_kata.watch import loop, terminal

    mock_interview.refuse_while_running("watch", "findings of hidden tests")
    history = History(warn)
    target = workspace.resolve(attempt, kata, history, reading.nearest)
    reading.check(target.kata)
    if target.piped is not None:
        raise UsageError(
            "attn-kata watch needs a file: standard input is read only once.", next_step="attn-kata watch FILE"
        )
    target.source()  # it says now what is wrong with the file
    flags = reading.flags
    if target.told_by:
        warn(target.told_by)
        source = target.source().code
        entry = next((name for slug, name, _ in inference.katas_of(source) if slug == target.kata.slug), "")
        if not entry and not flags:  # a method told the kata, and is watched alone
            flags = tuple(f"entry={name}" for _, name, _ in itertools.islice(inference.methods_of(source), 1))
        for _, name in reading.blocks_around(target.source().code, entry):
            warn(f"{name}, which uses it, is not watched: --class {name} watches it.")
    with engine.kept() as warm:
        make = functools.partial(loop.Loop, target, warm, history, seed=seed, flags=flags, reads=not reading.strict)
        if terminal.is_terminal():
            loop.on_screen(make, color=color())
        else:
            loop.in_lines(make, emit=emit)
