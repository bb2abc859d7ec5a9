"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from attn_kata import catalog, stub

_F = TypeVar("_F", bound=Callable[..., Any])


def complete_kata(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The katas that begin so, for the shell."""
    return [CompletionItem(slug) for slug in catalog.slugs() if slug.startswith(catalog.normal(incomplete))]


def complete_kata_or_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The katas that begin so, and files."""
    # Files first: the script for bash forgets what came before them, and offers files where nothing comes after.
    return [CompletionItem(incomplete, type="file"), *complete_kata(ctx, param, incomplete)]


def kata_argument(*, required: bool = False) -> Callable[[_F], _F]:
    """`KATA`: its name, looked up by the command."""
    return click.argument("kata", required=required, shell_complete=complete_kata)


def level_option(default: stub.Level | None, help_text: str) -> Callable[[_F], _F]:
    """`--level guided|standard|blank`."""
    return click.option("--level", type=click.Choice(stub.LEVELS), default=default, help=help_text)
