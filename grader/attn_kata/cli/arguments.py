"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from attn_kata import catalog, stub


class _KataName(click.ParamType):
    """A kata's name, completed by the shell; looked up by the command."""

    name = "kata"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(slug) for slug in catalog.slugs() if slug.startswith(catalog.normal(incomplete))]


class _KataOrFile(_KataName):
    """A kata's name or a path."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [*super().shell_complete(ctx, param, incomplete), CompletionItem(incomplete, type="file")]


KATA = _KataName()
KATA_OR_FILE = _KataOrFile()


def level_option(default: stub.Level | None, help_text: str) -> Any:
    """`--level guided|standard|blank`."""
    return click.option("--level", type=click.Choice(stub.LEVELS), default=default, help=help_text)
