"""Opens the room of an interview from the command line: with one warm engine; the terminal is restored afterwards."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from attn_kata.cli import engine, signals
from attn_kata.cli.output import color, emit, warn, width
from attn_kata.errors import OwnError

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine
    from attn_kata.interview.control import Desk
    from attn_kata.interview.replay import Replay

_SIZES = ("COLUMNS", "LINES")
_FRAMES = "250"  # a second, at most: at Textual's 60, a key pressed just after a redraw waits up to 33 ms
_TURN_SECONDS = 0.0005  # a busy thread yields to a key after this; Python's default of 5 ms would count three times


def can_open() -> bool:
    """Whether stdin and stdout are a terminal and textual is installed."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return terminal and importlib.util.find_spec("textual") is not None


def opened() -> None:
    """Run the room until the user leaves it, then print its messages. Raises OwnError when it crashed."""
    os.environ.setdefault("TEXTUAL_FPS", _FRAMES)
    sys.setswitchinterval(_TURN_SECONDS)
    from attn_kata.history import History
    from attn_kata.interview.control import Desk
    from attn_kata.interview.moments import SystemClock
    from attn_kata.interview.room.app import Room
    from attn_kata.interview.store import Store

    said: list[str] = []  # printed at the end: a line on stderr would disturb the screen
    with engine.kept() as warm, _measured_size():
        room = Room(
            desk=Desk(store=Store(said.append), clock=SystemClock()),
            history=History(said.append),
            engine=cast("Engine", warm),  # a WarmEngine has the same `grade` and `cancel`
            heard=said,
        )
        try:
            told = room.run()
        finally:
            signals.install()  # the room has replaced the handlers
            rescued = room.rescue()
            room.close()
    for sentence in (*said, rescued, told or ""):
        if sentence:
            warn(sentence)
    if room.stopped is not None:
        raise signals.Stopped(room.stopped)
    if room.return_code:
        raise OwnError("The room crashed. The interview still runs.", next_step="attn-kata interview --no-room")


def played(made: Replay, *, at: float | None, speed: float, plays: bool) -> None:
    """Play a session again on the whole screen, until the user leaves it."""
    from attn_kata.interview.player import Player

    with _measured_size():
        player = Player(made, at=at, speed=speed, plays=plays)
        try:
            player.run()
        finally:
            signals.install()
    if player.return_code:
        raise OwnError("The player crashed.", next_step="As text: attn-kata interview replay | cat")


def desk() -> Desk:
    """The desk on this machine's sessions, with the system's clock."""
    from attn_kata.interview.control import Desk
    from attn_kata.interview.moments import SystemClock
    from attn_kata.interview.store import Store

    return Desk(store=Store(warn), clock=SystemClock())


def entered(*, no_room: bool) -> None:
    """The room, or the prompt where there is no room: `no_room`, a pipe, a terminal that cannot show it."""
    if not no_room and can_open():
        opened()
        return
    from attn_kata.history import History
    from attn_kata.interview.line_mode import LineMode

    LineMode(
        desk=desk(),
        history=History(warn),
        engines=engine.started,
        emit=emit,
        warn=warn,
        width=width(),
        color=color(),
    ).run()


@contextmanager
def _measured_size() -> Iterator[None]:
    """Without COLUMNS and LINES from the environment: they would override the terminal's own size."""
    exported = {name: os.environ.pop(name) for name in _SIZES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(exported)
