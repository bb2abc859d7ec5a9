"""The command line itself: finds the command, runs it, and turns every outcome into a message and an exit code."""

from __future__ import annotations

import importlib
import io
from typing import Any

import click

from attn_kata import __version__
from attn_kata.cli.output import emit, warn
from attn_kata.errors import AttnKataError

# In the order of `--help`, each with the first sentence of its own help: `--help` shows them without importing the commands.
# Each name is also the module of its command, which is imported when it runs.
COMMANDS = {
    "list": "Show the katas in groups, and when you passed them.",
    "start": "Write the stub of KATA, with its contract in full.",
    "grade": "Grade your attempt at the current kata, at KATA, or in FILE.",
    "watch": "Grade your attempt again on every save.",
    "hint": "Give the next hint for KATA: about the last mistake, if it has one.",
    "explain": "Explain a mistake or a property, and why it matters.",
    "solution": "Show the reference for KATA beside your attempt.",
    "reset": "Start KATA again with a new stub; your old file is kept.",
    "status": "Show your progress and the next step.",
    "demo": "Show two reports: an attempt with a mistake, then the reference.",
    "hunt": "Write code that looks right and has mistakes: find them and mend them.",
    "review": "Review code that a colleague wrote for KATA: mark the lines that are wrong, and say why.",
    "napkin": "Ask for numbers about KATA: bytes, FLOPs, parameters.",
    "interview": "Take a timed mock interview, with a scorecard.",
    "class": "Grade a class: every submission in a folder or a zip.",
    "bundle": "Write what Gradescope or GitHub needs to grade with attn-kata.",
    "completion": "Print the script for Tab completion in your shell.",
    "dev": "For authors: write, check and show katas.",
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

    Start a kata, write it in your editor, and grade it. The report names the properties that do not hold and, if
    possible, the mistake.
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
        warn(said.getvalue().rstrip())  # the message has typed text in it, and `warn` makes it safe to print
        return problem.exit_code
    except AttnKataError as problem:
        warn(problem.what)
        if problem.next_step:
            warn(problem.next_step)
        return problem.exit_code
    except Exception as problem:  # it is our bug, and a traceback does not help the user
        from attn_kata.cli.fault import tell

        tell(problem, arguments)
        return 4
