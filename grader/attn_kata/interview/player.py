"""Plays a session again in a terminal: the line of time, the code with its changes, what held. Keys move in time."""

from __future__ import annotations

import time
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from attn_kata.interview.replay import LANES, SIGNS, SPEEDS, Frame, Replay, grouped

BEAT_SECONDS = 0.1
TALL = 20  # rows of a screen with room for a line of time in four parts and for all properties
KEYS = "Space play  ←→ moment  PgUp PgDn version  ↑↓ scroll  + - speed  q leave"
_STYLES = {"same": Style(), "added": Style(color="green"), "gone": Style(color="red", dim=True)}
_LETTERS = {"code": "s", "runs": "r", "questions": "?", "clock": "!"}
_DRAWN = ("clock", "code", "questions", "runs")  # where two moments meet, the later one here is seen


class Player(App[None]):
    """One replay. It starts paused, at `at` seconds of the clock, unless `plays`."""

    CSS = """
    Screen { overflow: hidden; }  /* else a scroll bar comes in a small window, takes two columns, and stays */
    #said, #line { height: auto; padding: 0 1; }
    #keys { height: auto; padding: 0 1; text-style: reverse; }
    #said { max-height: 50%; }
    #code { height: 1fr; padding: 0 1; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", priority=True),
        Binding("left", "step(-1)", priority=True),
        Binding("right", "step(1)", priority=True),
        Binding("pageup", "version(-1)", priority=True),
        Binding("pagedown", "version(1)", priority=True),
        Binding("home", "step(-1000000)", priority=True),
        Binding("end", "step(1000000)", priority=True),
        Binding("minus", "faster(-1)"),
        Binding("plus", "faster(1)"),
        Binding("q,escape,ctrl+c,ctrl+q", "quit", priority=True),
    ]

    def __init__(self, made: Replay, *, at: float | None, speed: float, plays: bool) -> None:
        super().__init__()
        self._made, self._speed, self._plays = made, speed, plays
        self._here = made.at_time(at) if at is not None else 0
        self._place = made.frames[self._here].place
        self._drawn: int | None = -1
        self._since = 0.0

    def compose(self) -> ComposeResult:
        yield Static(id="line", markup=False)
        yield Static(id="said", markup=False)
        with VerticalScroll(id="code"):
            yield Static(id="text", markup=False)
        yield Static(KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one("#code").focus()
        self._since = time.monotonic()
        self.set_interval(BEAT_SECONDS, self._beat)
        self._show()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._show)  # now it has the old size still

    def action_play(self) -> None:
        """Play or pause; at the end, play from the start."""
        self._plays = not self._plays
        self._since = time.monotonic()
        if self._plays and self._here == len(self._made.frames) - 1:
            self._go(0)
        self._show()

    def action_step(self, by: int) -> None:
        """So many moments on."""
        self._plays = False
        self._go(self._here + by)

    def action_version(self, by: int) -> None:
        """To where the version before or after this one was new."""
        self._plays = False
        frames = self._made.frames
        other = [one.version for one in frames[:: 1 if by > 0 else -1] if _is_past(one, frames[self._here], by)]
        if other:
            self._go(next(number for number, one in enumerate(frames) if one.version == other[0]))
        else:
            self._show()

    def action_faster(self, by: int) -> None:
        """The next speed up or down."""
        others = [speed for speed in SPEEDS if (speed - self._speed) * by > 0]
        if others:
            self._speed = min(others) if by > 0 else max(others)
        self._show()

    def _beat(self) -> None:
        now = time.monotonic()
        passed, self._since = now - self._since, now
        if not self._plays:
            return
        self._place = min(self._place + passed * self._speed, self._made.length)
        self._here = max(self._here, self._made.at_place(self._place))
        if self._place >= self._made.length:
            self._plays = False
        self._show()

    def _go(self, number: int) -> None:
        self._here = min(max(0, number), len(self._made.frames) - 1)
        self._place = self._made.frames[self._here].place
        self._show()

    def _show(self) -> None:
        one = self._made.frames[self._here]
        self.query_one("#line", Static).update(self._line(max(20, self.size.width - 2)))
        self.query_one("#said", Static).update(self._said(one))
        if one.version != self._drawn:
            self._drawn = one.version
            self._draw(one)

    def _line(self, width: int) -> Text:
        """The line of time with a letter for each moment and a mark under the present one; on a tall screen in lanes."""
        lanes = [(f"{lane:10}", (lane,)) for lane in LANES] if self.size.height >= TALL else [("", _DRAWN)]
        margin = len(lanes[0][0])

        def column(place: float) -> int:
            return round(place / max(self._made.length, 1.0) * (width - margin - 1))

        drawn = []
        for name, several in lanes:
            row = ["─"] * (width - margin)
            for lane in several:
                for one in self._made.frames:
                    if one.lane == lane:
                        row[column(one.place)] = _LETTERS[lane]
            drawn.append(name + "".join(row) + "\n")
        how = f"{'playing' if self._plays else 'paused'}, speed {self._speed:g}"
        mark = " " * (margin + column(self._place)) + "▲"
        return Text.assemble((self._made.title, "bold"), f"  {how}\n", *drawn, (mark, "bold"))

    def _said(self, one: Frame) -> Text:
        said = Text.assemble(
            (one.clock, "bold"), f"  {one.says}  ", (f"({self._here + 1} of {len(self._made.frames)})", "dim")
        )
        if one.held:
            said.append(f"\n{one.held}")
        if self.size.height >= TALL and one.core is not None:
            said.append(
                ": " + "  ".join([*(f"☑ {name}" for name in one.holding), *(f"☐ {name}" for name in one.lacking)])
            )
        for how, names in grouped(one.flips):
            said.append(f"\n{how}: ", "red" if how == "broke" else "green").append(", ".join(names))
        return said

    def _draw(self, one: Frame) -> None:
        rows = self._made.versions[one.version] if one.version is not None else ()
        text = Text("\n").join(Text(f"{SIGNS[mark]} {line}", _STYLES[mark]) for mark, line in rows)
        self.query_one("#text", Static).update(text if rows else Text("There is no code yet."))
        first = next((number for number, (mark, _) in enumerate(rows) if mark != "same"), 0)
        self.query_one("#code", VerticalScroll).scroll_to(y=max(0, first - 4), animate=False)


def _is_past(one: Frame, here: Frame, by: int) -> bool:
    """Whether the version of `one` comes after that of `here`, or before it where `by` is negative."""
    mine, other = (-1 if frame.version is None else frame.version for frame in (here, one))
    return (other - mine) * by > 0
