"""`attn-kata interview host` and `sit`: two people at one session."""

from __future__ import annotations

import click

from attn_kata.cli import engine, room
from attn_kata.cli.output import emit, terminal_columns, warn
from attn_kata.errors import UsageError


@click.command("host", short_help="Partner mode: the interviewer's side of a session.")
@click.option("--plan", metavar="NAME", help="Start a session with this plan, if none is running.")
def host(plan: str | None) -> None:
    """Partner mode: the interviewer's side, in a terminal of its own. The candidate types: attn-kata interview sit

    It shows the hidden properties of every version that is saved. You can give hints, ask questions, and fill in a
    rubric, which is in the scorecard as yours.
    """
    from attn_kata.history import History, home
    from attn_kata.interview import actions, plans
    from attn_kata.interview.hosting import Host
    from attn_kata.interview.room.presence import Presence

    desk = room.desk()
    if desk.store.active() is None:
        chosen = plans.named(plan or plans.DEFAULT_PLAN)
        actions.start(desk, chosen, coached=False, folder=None, history=History(warn), engines=engine.started)
    elif plan is not None:
        warn("A session is running already, so --plan is not used.")
    session = actions.active(desk, warn, only_look=True)
    presence = Presence(home(), "host")
    if presence.arrive(session.id) == presence.shared:
        raise UsageError(
            f"Another host is at {session.name} already.", next_step="Leave there first: type quit at its prompt"
        )
    try:
        Host(
            desk=desk,
            number=session.id,
            engines=engine.started,
            emit=emit,
            warn=warn,
            columns=lambda: min(terminal_columns(least=20), 100),
        ).run()
    finally:
        presence.leave()


@click.command("sit", short_help="Partner mode: the candidate's side of a session.")
def sit() -> None:
    """Partner mode: the candidate's side, after the interviewer has typed: attn-kata interview host"""
    if room.desk().store.active() is None:
        raise UsageError("Nobody hosts an interview yet.", next_step="In the other terminal: attn-kata interview host")
    room.entered(no_room=False)
