"""The parts of every screen of the room: the clock at the top, the keys at the bottom, and the panes between."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import HorizontalGroup, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.widgets._footer import FooterKey
from textual.worker import Worker

from attn_kata.interview import moments
from attn_kata.interview.session import Session

if TYPE_CHECKING:
    from attn_kata.interview.room.app import Room

_P = ParamSpec("_P")
PAUSE = 1.0  # seconds without a key, after which a key counts as an answer to a new dialog
HURRY, LAST = 300.0, 60.0  # seconds left from which the clock changes its colour


class Typing:
    """Tells when the typing has stopped, so that a new dialog does not take a key that was meant for the editor."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def stopped(self) -> bool:
        """Whether this key came after a pause. Call it for every key."""
        now = time.monotonic()
        before, self._last = self._last, now
        return now - before >= PAUSE


class Words(Static):
    """Text that is never read as markup."""

    def __init__(self, text: str = "", **named: str) -> None:
        super().__init__(text, markup=False, **named)  # type: ignore[arg-type]


class Pane(VerticalScroll, can_focus=True):
    """A text with a title that scrolls by keyboard."""

    def __init__(self, title: str, text: str = "", *, id: str) -> None:
        super().__init__(Words(text), id=id)
        self.border_title = title

    def show(self, text: str | Content, *, end: bool = False) -> None:
        """Show another text, from its start or its `end`."""
        self.query_one(Words).update(text)
        self.anchor(end)  # the text is laid out later, and the pane may not be shown yet: its end is not known now
        if not end:
            self.scroll_home(animate=False)


class Clock(Static):
    """One line that is always visible: the time left, the stage, and whether the text is saved."""

    def __init__(self) -> None:
        super().__init__("", markup=False, id="clock")

    def show(self, session: Session | None, left: float, saved: str, trouble: str = "") -> None:
        """Show the clock. An unchanged line is not drawn again, and the layout stays."""
        self.set_class(session is not None and session.clock_runs and LAST < left <= HURRY, "-hurry")
        self.set_class(session is not None and session.clock_runs and left <= LAST, "-last")
        line = clock_line(session, left, saved, trouble)
        if line != self.content:
            self.update(line, layout=False)


def clock_line(session: Session | None, left: float, saved: str = "", trouble: str = "") -> str:
    """`43:12 left of 55:00 │ saved │ 2/3 Causal mask │ mock`. What matters comes first: the end of a long line is cut off."""
    if session is None:
        return "attn-kata interview"
    of = moments.clock_text(session.seconds)
    if session.state in ("ready", "briefing"):
        time = f"{of}, not started"
    elif session.paused:
        time = f"{moments.clock_text(left)} left of {of}, paused"
    elif session.clock_runs:
        time = f"{moments.clock_text(left)} left of {of}"
    else:
        time = "the time is up" if session.state == "time_up" else "the clock has stopped"
    count = sum(1 for one in session.stages if one.timed)
    stage = f"{session.stage + 1}/{count} " if count > 1 and session.round.timed else ""
    what = f"{stage}{session.round.title}"
    parts = [time, trouble, what, session.mode] if trouble else [time, saved, what, session.mode]
    return " │ ".join(part for part in parts if part)


class Keys(Footer):
    """The list of keys, in as many lines as the screen needs: Textual's own has one, and cuts off the rest.

    It is rebuilt only after a change, because it would delay the next key on every change of pane.
    """

    _made: Sequence[object] = ()
    _width = 0

    def compose(self) -> ComposeResult:
        self._width = self.app.size.width
        rows: list[list[FooterKey]] = [[]]
        left = self._width
        for key in super().compose():
            assert isinstance(key, FooterKey)  # no key of the room is in a group
            takes = len(key.key_display) + len(key.description) + 3
            if takes > left and rows[-1]:
                rows.append([])
                left = self._width
            left -= takes
            rows[-1].append(key)
        for row in rows:
            yield HorizontalGroup(*row)

    def on_resize(self) -> None:
        """Other lines for another width."""
        self.fit()

    def fit(self) -> None:
        """Build the lines again if the width has changed. Behind a dialog there are no keys: its end calls this again."""
        if self._made and self._width != self.app.size.width and self.screen.is_current:
            self._width = self.app.size.width
            self.call_after_refresh(self.recompose)

    def bindings_changed(self, screen: Screen[Any]) -> None:
        keys = [(binding, enabled) for _, binding, enabled, _ in screen.active_bindings.values() if binding.show]
        if keys != self._made and self.app.app_focus:  # without focus, Textual builds none
            self._made = keys
            super().bindings_changed(screen)


class RoomScreen(Screen[None]):
    """A screen of the room. Below 100 columns it shows one pane at a time, or the panes below each other."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 (Textual declares it so)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,ctrl+o", "app.help", "Help", key_display="F1"),
    ]

    _stepping = False

    @property
    def room(self) -> Room:
        """The application."""
        return cast("Room", self.app)

    @property
    def session(self) -> Session:
        """The session that this screen is about."""
        assert self.room.session is not None
        return self.room.session

    def compose(self) -> ComposeResult:
        yield Clock()
        yield from self.body()
        yield Keys(show_command_palette=False)

    def body(self) -> ComposeResult:
        """The part between the clock and the keys."""
        yield from ()

    def run_worker(self, *given: Any, **named: Any) -> Worker[Any]:
        """Run work in the room: it may replace this screen, and the screen would wait for its own work."""
        named["group"] = f"{type(self).__name__} {named.get('group', '')}"  # `exclusive` means among this screen's
        return self.app.run_worker(*given, **named)

    async def step(self, call: Callable[_P, object], *args: _P.args, **named: _P.kwargs) -> bool:
        """Make one call at the desk, and show what came of it. While one is under way, others are dropped.

        Returns whether the call was made and not refused.
        """
        if self._stepping:
            return False
        self._stepping = True
        try:
            made = await self.room.tried(call, *args, **named)
            if made:
                await self.room.look()
            return made
        finally:
            self._stepping = False

    def on_screen_resume(self) -> None:
        """Show the time at once, and the keys for the size of now."""
        self.show_clock()
        for keys in self.query(Keys):
            keys.fit()

    def saved(self) -> str:
        """Whether the text is saved, or ""."""
        return ""

    def trouble(self) -> str:
        """Why the text cannot be saved, or ""."""
        return ""

    def show_clock(self) -> None:
        """Bring the clock line up to date."""
        for clock in self.query(Clock):
            clock.show(self.room.session, self.room.left(), self.saved(), self.trouble() or self.room.trouble)
