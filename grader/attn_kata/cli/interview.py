"""`attn-kata interview`: timed mock interviews. Without a subcommand it starts one, or continues the one that runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attn_kata.cli import engine, partner, room
from attn_kata.cli.arguments import json_option
from attn_kata.cli.output import color, emit, warn, width
from attn_kata.errors import UsageError, why

if TYPE_CHECKING:
    from attn_kata.interview.control import Desk
    from attn_kata.interview.session import Session

FORMATS = ("terminal", "json", "markdown", "html")


def _here() -> tuple[Desk, Session]:
    """The desk and the running session; announcements of the clock are printed first."""
    from attn_kata.interview import actions

    desk = room.desk()
    return desk, actions.active(desk, warn)


def _progress(done: int, of: int) -> None:
    """Show which version is being graded, on a terminal only: there may be dozens."""
    if of > 1 and sys.stderr.isatty():
        end = "\r\x1b[K" if done == of else f"\rGrading version {done + 1} of {of} …"
        sys.stderr.write(end)
        sys.stderr.flush()


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"'{text}' is not the number of an interview.", next_step="List all interviews: attn-kata interview list"
        )
    return int(text[:15])


@click.group("interview", invoke_without_command=True, short_help="Take a timed mock interview, with a scorecard.")
@click.option("--no-room", is_flag=True, help="Use a prompt, line by line, instead of the full screen.")
@click.pass_context
def command(ctx: click.Context, no_room: bool) -> None:
    """Take a timed mock interview: a briefing, a clock, hidden tests, questions, a scorecard.

    Without a command, it opens the room: task, editor, output and clock on one screen. It starts an interview or
    continues the one that runs. The commands below do the same, step by step.
    """
    if ctx.invoked_subcommand is None:
        room.entered(no_room=no_room)


@command.command("start")
@click.option(
    "--plan",
    "--track",
    metavar="NAME",
    help="phone-screen, deep-dive, debugging, … or your own: FILE.toml (default: core)",
)
@click.option("--kata", "katas", metavar="KATA …", multiple=True, help="These katas instead of a plan.")
@click.argument("more", metavar="", nargs=-1)
@click.option("--minutes", metavar="N", help="Minutes for the whole session (default: the plan's).")
@click.option("--list-questions", "listed", is_flag=True, help="For beginners: show the questions that you may ask.")
@click.option("--coached", is_flag=True, help="Allow findings after every run, pauses and hints; marked as coached.")
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="Folder for your files (default: a new folder here)."
)
def start(
    plan: str | None,
    katas: tuple[str, ...],
    more: tuple[str, ...],
    minutes: str | None,
    listed: bool,
    coached: bool,
    folder: Path | None,
) -> None:
    """Start an interview: show the task. The clock does not run yet.

    A plan of your own is a TOML file:

    \b
      title = "My plan"
      about = "two rounds, then questions"
      rounds = [
        { round = "write", kata = "sdpa", minutes = 20 },
        { round = "grow", kata = "mha", minutes = 25 },
        { round = "talk" },
      ]

    The rounds are write, grow, hunt, review, napkin, derive and talk.
    """
    from attn_kata.history import History
    from attn_kata.interview import actions, plans

    if more and not katas:
        raise UsageError(f"'{more[0]}' is not an option.", next_step=f"attn-kata interview start --kata {more[0]}")
    if plan and katas:
        raise UsageError("A session has a plan or katas, not both.", next_step="Give either --plan or --kata")
    chosen = plans.of_katas((*katas, *more)) if katas else plans.named(plan or plans.DEFAULT_PLAN)
    if minutes is not None:
        chosen = plans.with_minutes(chosen, plans.minutes_from(minutes))
    place = folder.absolute() if folder is not None else None
    emit(
        actions.start(
            room.desk(),
            chosen,
            coached=coached,
            folder=place,
            history=History(warn),
            engines=engine.started,
            listed=listed,
        )
    )


@command.command("status")
def status() -> None:
    """Show the state of the session and the next command."""
    from attn_kata.interview import actions

    desk = room.desk()
    emit(actions.status(desk, actions.active(desk, warn, only_look=True)))


@command.command("ask", context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="WORDS …", nargs=-1, required=True)
def ask(words: tuple[str, ...]) -> None:
    """Ask a clarifying question in your own words."""
    from attn_kata.interview import actions

    emit(actions.ask(*_here(), " ".join(words)))


@command.command("run")
@click.option("--own", is_flag=True, help="Run the file as 'python FILE' would, with your own tests.")
def run(own: bool) -> int:
    """Run your file: shows the worked example, shapes and your prints. Coached: the whole report."""
    from attn_kata.interview import runs

    told, code = runs.run(*_here(), engine.started, width=width(), color=color(), own=own)
    emit(told)
    return code


@command.command("submit")
def submit() -> None:
    """Hand in your file as it is on the disk."""
    from attn_kata.interview import actions

    emit(actions.submit(*_here()))


@command.command("next", short_help="Go to the next step: coding, questions, review, end.")
@click.option("--skip", is_flag=True, help="Skip the questions that have no answer.")
def next_(skip: bool) -> None:
    """Go to the next step: coding (this starts the clock), the next stage, the questions, the review, the end."""
    from attn_kata.history import History
    from attn_kata.interview import actions

    desk, session = _here()
    emit(
        actions.advance(
            desk, session, engine.started, History(warn), skip=skip, width=width(), color=color(), tell=_progress
        )
    )


@command.command(
    "answer",
    context_settings={"ignore_unknown_options": True},
    short_help="Answer question N: a number, an option, or words.",
)
@click.argument("place", metavar="N", type=int)
@click.argument("text", nargs=-1, required=True)
def answer(place: int, text: tuple[str, ...]) -> None:
    """Answer follow-up question N: a number, the number of an option, or words."""
    from attn_kata.interview import actions

    emit(actions.answer(*_here(), place, " ".join(text)))


@command.command("tick")
@click.argument("place", metavar="N", type=int)
@click.argument("points", metavar="[POINT …]", type=int, nargs=-1)
def tick(place: int, points: tuple[int, ...]) -> None:
    """Mark which points of the model answer your answer N had. They are self-reported and do not count."""
    from attn_kata.interview import control, words

    desk, session = _here()
    emit(words.points(control.tick_points(desk, session.id, place, points), place))


@command.command("pause")
def pause() -> None:
    """Pause the clock of a coached session. A mock session cannot pause."""
    from attn_kata.interview import actions, control

    desk, session = _here()
    emit(actions.status(desk, control.pause(desk, session.id)))


@command.command("resume")
def resume() -> None:
    """Come back to the running session."""
    from attn_kata.interview import actions

    emit(actions.resume(*_here()))


@command.command("end")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def end(yes: bool) -> None:
    """End the session early. In the review, close it."""
    from attn_kata.interview import control, words

    desk, session = _here()
    if session.state != "review" and not yes:
        click.confirm(f"End interview {session.id} without a scorecard?", abort=True, err=True)
    ended = control.end(desk, session.id)
    emit(
        f"Interview {ended.id}: {words.STATES[ended.state]}. Your files stay.\n"
        f"To see it again: attn-kata interview show {ended.id}"
    )


@command.command("show", short_help="Show the review, with the scorecard.")
@click.argument("number", metavar="[ID]", required=False)
def show(number: str | None) -> None:
    """Show the review: reports, diagnosis, the diff to the reference, the timeline, the scorecard."""
    _show(number, form="terminal", output=None)


@command.command("export", short_help="Write the review as JSON, Markdown or one HTML page.")
@click.argument("number", metavar="[ID]", required=False)
@click.option("--format", "form", type=click.Choice(FORMATS[1:]), default="html", show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
def export(number: str | None, form: str, output: Path | None) -> None:
    """Write the review as JSON, Markdown, or one self-contained HTML page."""
    _show(number, form=form, output=output)


def _show(number: str | None, *, form: str, output: Path | None) -> None:
    from attn_kata.history import History
    from attn_kata.interview import actions
    from attn_kata.workspace import printable

    desk = room.desk()
    if desk.store.active() is not None:
        actions.active(desk, warn, only_look=True)
    session = actions.pick(desk, _number(number))
    told = actions.show(
        desk, session, engine.started, History(warn), form=form, width=width(), color=color(), tell=_progress
    )
    if output is None:
        emit(told)
        return
    try:
        output.write_text(told, encoding="utf-8", errors="replace", newline="\n")
    except IsADirectoryError as problem:
        ending = {"json": "json", "markdown": "md", "html": "html"}[form]
        raise UsageError(
            f"'{printable(str(output))}' is a folder.",
            next_step=f"Name a file in it: --output {shlex.quote(printable(str(output / f'interview-{session.id}.{ending}')))}",
        ) from problem
    except OSError as problem:
        raise UsageError(
            f"'{printable(str(output))}' cannot be written: {why(problem)}.",
            next_step="Name another file: --output FILE",
        ) from problem
    warn(f"Interview {session.id} is in '{printable(str(output))}'.")


@command.command("replay", short_help="Play a session again: the code, what held, the runs.")
@click.argument("number", metavar="[ID]", required=False)
@click.option("--at", "time", metavar="M:SS", help="Begin at this time of the clock. In a pipe: show only this moment.")
@click.option("--speed", metavar="N", help="Play at once, N times as fast as it was. In a pipe it changes nothing.")
def replay_(number: str | None, time: str | None, speed: str | None) -> None:
    """Play a session again: the code with its changes, the properties that held, runs, questions and announcements.

    Space plays and pauses, left and right go one moment back or forward, q leaves. In a pipe it is plain text.
    """
    from attn_kata.history import History
    from attn_kata.interview import actions, replay

    at, pace = replay.time_from(time), replay.speed_from(speed)
    desk = room.desk()
    if desk.store.active() is not None:
        actions.active(desk, warn, only_look=True)
    session = actions.pick(desk, _number(number))
    made = replay.of(actions.body_of(desk, session, engine.started, History(warn), _progress))
    if room.can_open():
        room.played(made, at=at, speed=pace, plays=speed is not None)
    else:
        emit(replay.as_text(made, at))


@command.command("list")
@json_option()
def list_(as_json: bool) -> None:
    """List all interviews, the newest first."""
    from attn_kata.interview import words

    desk = room.desk()
    if desk.store.active() is not None:
        from attn_kata.interview import actions

        actions.active(desk, warn, only_look=True)
    overall = {number: str(card["overall"]) for number, card in desk.store.scorecards().items()}
    sessions = desk.store.sessions()
    emit(words.listing_json(sessions, overall) if as_json else words.listing(sessions, overall))


@command.command("delete")
@click.argument("number", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete(number: str, yes: bool) -> None:
    """Delete an interview that has ended. Your own files stay."""
    desk = room.desk()
    session = desk.store.load(_number(number) or 0)
    if not yes:
        click.confirm(f"Delete interview {session.id} ({session.track}) for good?", abort=True, err=True)
    desk.store.delete(session.id)
    emit(f"Interview {session.id} is deleted. Your own files are unchanged.")


command.add_command(partner.host)
command.add_command(partner.sit)
