"""What `hunt`, `napkin` and `review` share: which kata, which seed, and code that is proven before it is shown."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

import click

from attn_kata import catalog, workspace
from attn_kata.catalog import Kata
from attn_kata.cli import engine
from attn_kata.cli.output import waiting
from attn_kata.errors import UsageError
from attn_kata.history import History
from attn_kata.report.model import Report
from attn_kata.rounds import spoiled
from attn_kata.rounds.spoiled import MOST_BUGS, Spoiled

_F = TypeVar("_F", bound=Callable[..., Any])


def options(command: _F) -> _F:
    """`--all-katas` and `--seed N`."""
    seed = click.option(
        "--seed", type=click.IntRange(0, 2**63 - 1), help="The same seed draws the same again.  [default: random]"
    )
    every = click.option("--all-katas", is_flag=True, help="Draw from all katas instead of naming one.")
    return every(seed(command))


def bugs_option(command: _F) -> _F:
    """`--bugs 1-4`."""
    count = click.IntRange(1, MOST_BUGS)
    return click.option("--bugs", type=count, help="How many mistakes to look for.  [default: drawn, and not told]")(
        command
    )


def seed_of(seed: int | None) -> int:
    """The chosen seed, or a random one that is short enough to type."""
    return seed if seed is not None else secrets.randbelow(10**6)


def kata_of(name: str | None, all_katas: bool, seed: int, history: History) -> Kata:
    """The named kata, a drawn one, or the current one. Raises UsageError."""
    if name and all_katas:
        raise UsageError(f"'{name}' is a kata, and --all-katas draws one.", next_step="Give one of the two")
    if all_katas:
        return random.Random(seed).choice(catalog.katas())
    return catalog.find(name) if name else workspace.current(history)


def made(kata: Kata, *, seed: int, bugs: int | None) -> tuple[Spoiled, Report]:
    """Spoiled code and its grading, by an engine of its own. Raises UsageError."""
    with engine.started() as running, waiting("Making it … (Ctrl-C stops)"):

        def grade(slug: str, source: bytes) -> Report:
            return running.grade(slug, source, attempt=f"{slug}.py")

        return spoiled.make(kata, seed=seed, bugs=bugs, grade=grade)
