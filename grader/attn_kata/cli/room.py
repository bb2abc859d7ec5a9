"""The room of an interview, opened from the command line: one warm engine, and the terminal given back as it was."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from attn_kata.cli import engine, signals
from attn_kata.cli.output import warn
from attn_kata.errors import OwnError

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

_SIZES = ("COLUMNS", "LINES")
_FRAMES = "250"  # a second, at most: at Textual's 60 a key that comes just after the clock was drawn waits up to 33 ms
_TURN_SECONDS = 0.0005  # a thread at work gives way to a key after this; Python's 5 ms pass three times on a key's way


def can_open() -> bool:
    """Whether there is a terminal, and textual."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return terminal and importlib.util.find_spec("textual") is not None


def opened() -> None:
    """The room until it is left; then what it has to say. Raises OwnError where it fell over."""
    os.environ.setdefault("TEXTUAL_FPS", _FRAMES)
    sys.setswitchinterval(_TURN_SECONDS)
    from attn_kata.history import History
    from attn_kata.interview.control import Desk
    from attn_kata.interview.moments import SystemClock
    from attn_kata.interview.room.app import Room
    from attn_kata.interview.store import Store

    said: list[str] = []  # a line on stderr would tear the screen
    with engine.kept() as warm, _measured_size():
        room = Room(
            desk=Desk(store=Store(said.append), clock=SystemClock()),
            history=History(said.append),
            engine=cast("Engine", warm),  # which grades and cancels like one
            heard=said,
        )
        try:
            told = room.run()
        finally:
            signals.install()  # the room has taken them
            rescued = room.rescue()
            room.close()
    for sentence in (*said, rescued, told or ""):
        if sentence:
            warn(sentence)
    if room.stopped is not None:
        raise signals.Stopped(room.stopped)
    if room.return_code:
        raise OwnError("The room fell over. The interview goes on.", next_step="attn-kata interview --no-room")


@contextmanager
def _measured_size() -> Iterator[None]:
    """What is exported as COLUMNS and LINES would win over the terminal's own size, and over every change of it."""
    exported = {name: os.environ.pop(name) for name in _SIZES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(exported)
