"""The command line itself: finds the command, runs it, and turns whatever happens into words and an exit code."""

from __future__ import annotations

import importlib
import io
from typing import Any

import click

from attn_kata import __version__
from attn_kata.cli.output import emit, warn
from attn_kata.errors import AttnKataError

# In the order of `--help`, with what it says of each: the first sentence of the command's own help, written down here so that
# `--help` imports none of them. Each is the one command of the module of its name, imported only when it is wanted.
COMMANDS = {
    "list": "Show the katas by level, and what you passed when.",
    "start": "Write the stub of KATA, with its contract in full.",
    "grade": "Grade your attempt: the current kata's, that of KATA, or FILE.",
    "watch": "Grade on every save: the current kata, that of KATA, or FILE.",
    "hint": "Give the next hint for KATA.",
    "explain": "Say what a mistake or a property is, and why it matters.",
    "solution": "Show the reference for KATA beside your attempt.",
    "reset": "Begin KATA anew with a new stub; your old file is kept.",
    "status": "Show your progress and the next step.",
    "demo": "Show what a report looks like: a mistake, then the reference.",
    "interview": "Sit a timed mock interview, with a scorecard.",
    "completion": "Print the script for completion in your shell.",
    "dev": "For authors: check katas.",
}


class LazyGroup(click.Group):
    """A group whose commands are modules beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"attn_kata.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)

        import difflib

        from attn_kata import catalog

        near = difflib.get_close_matches(name, COMMANDS, n=1)
        meant = f" Did you mean '{near[0]}'?" if near else ""
        if catalog.normal(name) in catalog.slugs():
            meant = f" It is a kata: did you mean 'attn-kata start {name}' or 'attn-kata grade {name}'?"
        raise click.UsageError(f"There is no command '{name}'.{meant}", ctx)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="First steps: attn-kata demo, then attn-kata start sdpa, then attn-kata grade.",
)
@click.version_option(__version__, "-V", "--version", prog_name="attn-kata", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Practise writing attention for interviews.

    Start a kata, write it in your editor, grade it: the report names the properties that do not hold and, where it can,
    the mistake.
    """
    if ctx.invoked_subcommand is None:
        emit(ctx.get_help())


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        result: Any = cli.main(arguments, prog_name="attn-kata", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.Abort:
        return 130
    except click.ClickException as problem:
        said = io.StringIO()
        problem.show(said)
        warn(said.getvalue().rstrip())  # which makes it plain: what was typed is in it
        return problem.exit_code
    except AttnKataError as problem:
        warn(problem.what)
        if problem.next_step:
            warn(problem.next_step)
        return problem.exit_code
    except Exception as problem:  # whatever it is, it is ours, and no traceback helps the person
        from attn_kata.cli.fault import tell

        tell(problem, arguments)
        return 4
