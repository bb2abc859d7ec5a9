"""`attn-kata completion`: commands, options and katas by the Tab key."""

from __future__ import annotations

import click

from attn_kata.cli.output import emit, warn

INSTALL = {
    "bash": "For every new shell: echo 'eval \"$(attn-kata completion bash)\"' >> ~/.bashrc",
    "zsh": "For every new shell: echo 'eval \"$(attn-kata completion zsh)\"' >> ~/.zshrc (after compinit)",
    "fish": "For every new shell: attn-kata completion fish > ~/.config/fish/completions/attn-kata.fish",
}


@click.command("completion", short_help="Print the script for completion in your shell.")
@click.argument("shell", type=click.Choice(list(INSTALL)))
def command(shell: str) -> None:
    """Print the script that completes commands, options and katas in SHELL: bash, zsh or fish.

    The line to put into your shell's start-up file is on stderr.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from attn_kata.cli.group import cli

    chosen = get_completion_class(shell)
    assert chosen is not None
    # ShellComplete's own, because that of bash starts a bash to ask for its version.
    emit(ShellComplete.source(chosen(cli, {}, "attn-kata", "_ATTN_KATA_COMPLETE")))
    warn(INSTALL[shell])
