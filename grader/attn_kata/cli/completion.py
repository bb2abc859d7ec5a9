"""`attn-kata completion`: the Tab key completes commands, options and katas."""

from __future__ import annotations

import click

from attn_kata.cli.output import emit, warn

INSTALL = {
    "bash": "For every new shell: echo 'eval \"$(attn-kata completion bash)\"' >> ~/.bashrc",
    "zsh": "For every new shell: echo 'eval \"$(attn-kata completion zsh)\"' >> ~/.zshrc (after compinit)",
    "fish": "For every new shell: attn-kata completion fish > ~/.config/fish/completions/attn-kata.fish",
}


@click.command("completion", short_help="Print the script for Tab completion in your shell.")
@click.argument("shell", type=click.Choice(list(INSTALL)))
def command(shell: str) -> None:
    """Print the script that completes commands, options and katas in SHELL: bash, zsh or fish.

    The line for your shell's start-up file is printed on stderr.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from attn_kata.cli.group import cli

    chosen = get_completion_class(shell)
    assert chosen is not None
    # The base class's method, because the one for bash starts a bash to read its version.
    script = ShellComplete.source(chosen(cli, {}, "attn-kata", "_ATTN_KATA_COMPLETE"))
    if shell == "fish":
        # A line is "type,value<tab>description". click's script splits it at every comma, which cuts descriptions.
        script = script.replace('string split "," $completion', 'string split -m 1 "," $completion')
    emit(script)
    warn(INSTALL[shell])
