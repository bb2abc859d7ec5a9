"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from attn_kata import catalog, stub
from attn_kata.errors import UsageError

_F = TypeVar("_F", bound=Callable[..., Any])


def complete_kata(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The katas whose names begin with `incomplete`, for the shell."""
    return [CompletionItem(slug) for slug in catalog.slugs() if slug.startswith(catalog.normal(incomplete))]


def complete_kata_or_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The katas whose names begin with `incomplete`, and files."""
    # Files first: the bash script drops everything before them, and offers files when nothing follows.
    return [CompletionItem(incomplete, type="file"), *complete_kata(ctx, param, incomplete)]


def attempt_argument() -> Callable[[_F], _F]:
    """`KATA | FILE`: one of them or none. Several are accepted here, so that the error can explain."""
    return click.argument(
        "attempt", metavar="[KATA | FILE]", nargs=-1, callback=_one_attempt, shell_complete=complete_kata_or_file
    )


def _one_attempt(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The one argument. Raises UsageError for several."""
    if len(values) < 2:
        return values[0] if values else None
    command = f"attn-kata {ctx.info_name}"
    first, second = (shlex.quote(value) for value in values[:2])
    following = f"Grade them in turn: {command} {first}, then {command} {second}"
    if catalog.normal(values[0]) in catalog.slugs():
        following = f"For a file of your own: {command} {second} --kata {first}"
    raise UsageError(f"{command} takes one attempt at a time, not {len(values)}.", next_step=following)


def kata_argument(*, required: bool = False) -> Callable[[_F], _F]:
    """`KATA`: a name that the command looks up."""
    return click.argument("kata", required=required, shell_complete=complete_kata)


def katas_argument(metavar: str) -> Callable[[_F], _F]:
    """`KATA ...`: one or several, by the name of the argument `katas`."""
    return click.argument("katas", metavar=metavar, nargs=-1, callback=_some_katas, shell_complete=complete_kata)


def _some_katas(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments. Raises UsageError for none."""
    if not values:
        raise UsageError("Which kata is it?", next_step=f"The katas: attn-kata list. Then: {ctx.command_path} KATA")
    return values


def json_option() -> Callable[[_F], _F]:
    """`--json`. `--format json` is the same, as for `grade`, which has more formats."""

    def add(command: _F) -> _F:
        @functools.wraps(command)
        def called(*args: Any, as_json: bool, form: str, **named: Any) -> Any:
            return command(*args, as_json=as_json or form == "json", **named)

        called = click.option("--format", "form", type=click.Choice(["terminal", "json"]), hidden=True)(called)
        return cast("_F", click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(called))

    return add


def level_option(default: stub.Level | None, help_text: str) -> Callable[[_F], _F]:
    """`--level guided|standard|blank`."""
    return click.option("--level", type=click.Choice(stub.LEVELS), default=default, help=help_text)
