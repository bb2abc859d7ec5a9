"""What every screen of the room has: the clock at the top, the keys at the bottom, and panes that share the space."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.worker import Worker

from attn_kata import catalog
from attn_kata.interview import moments
from attn_kata.interview.session import Session

if TYPE_CHECKING:
    from attn_kata.interview.room.app import Room

PAUSE = 1.0  # seconds without a key after which a key is meant for what is on the screen
HURRY, LAST = 300.0, 60.0  # seconds left from which the clock changes its colour


class Typing:
    """What may come in the middle of a word takes no key as meant for it before the typing has stopped."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def stopped(self) -> bool:
        """To be asked at every key: whether it came after a pause."""
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
        """Show this instead, from its beginning; or its `end`."""
        self.query_one(Words).update(text)
        if end:
            self.scroll_end(animate=False)
        else:
            self.scroll_home(animate=False)


class Clock(Static):
    """One line that never scrolls away: what is left, where the session stands, and whether the text is saved."""

    def __init__(self) -> None:
        super().__init__("", markup=False, id="clock")

    def show(self, session: Session | None, left: float, saved: str, trouble: str = "") -> None:
        """The clock now. What would show the same is not drawn again, and one line never moves the others."""
        self.set_class(session is not None and session.clock_runs and LAST < left <= HURRY, "-hurry")
        self.set_class(session is not None and session.clock_runs and left <= LAST, "-last")
        line = clock_line(session, left, saved, trouble)
        if line != self.content:
            self.update(line, layout=False)


def clock_line(session: Session | None, left: float, saved: str = "", trouble: str = "") -> str:
    """`43:12 left of 55:00 │ 2/3 Causal mask │ mock │ saved`. Trouble comes first: the end of a long line is cut off."""
    if session is None:
        return "attn-kata interview"
    of = moments.clock_text(session.seconds)
    if session.state in ("ready", "briefing"):
        time = f"{of} from when you begin"
    elif session.paused:
        time = f"{moments.clock_text(left)} left of {of}, paused"
    elif session.clock_runs:
        time = f"{moments.clock_text(left)} left of {of}"
    else:
        time = "the time is up" if session.state == "time_up" else "the clock has stopped"
    stage = f"{session.stage + 1}/{len(session.stages)} " if len(session.stages) > 1 else ""
    what = f"{stage}{catalog.find(session.kata).title}"
    parts = [time, trouble, what, session.mode] if trouble else [time, what, session.mode, saved]
    return " │ ".join(part for part in parts if part)


class Keys(Footer):
    """What the keys do. Made anew only where that changed: every move to another pane asks for it, and the next key waits."""

    _made: Sequence[object] = ()

    def bindings_changed(self, screen: Screen[Any]) -> None:
        keys = [(binding, enabled) for _, binding, enabled, _ in screen.active_bindings.values() if binding.show]
        if keys != self._made and self.app.app_focus:  # without the focus none are made
            self._made = keys
            super().bindings_changed(screen)


class RoomScreen(Screen[None]):
    """A screen of the room. Below 100 columns only one of its panes is seen at a time, or they lie under each other."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 (Textual declares it so)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,ctrl+o", "app.help", "Help", key_display="F1"),
    ]

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
        """What lies between the clock and the keys."""
        yield from ()

    def run_worker(self, *given: Any, **named: Any) -> Worker[Any]:
        """Work belongs to the room: it may be what replaces this very screen, which would wait for it to end."""
        named["group"] = f"{type(self).__name__} {named.get('group', '')}"  # `exclusive` means among this screen's
        return self.app.run_worker(*given, **named)

    def on_screen_resume(self) -> None:
        """The clock shows the time from the first moment."""
        self.show_clock()

    def saved(self) -> str:
        """Whether the text is saved, where there is one."""
        return ""

    def trouble(self) -> str:
        """What keeps it from being saved."""
        return ""

    def show_clock(self) -> None:
        """Bring the clock line up to date."""
        for clock in self.query(Clock):
            clock.show(self.room.session, self.room.left(), self.saved(), self.trouble() or self.room.trouble)
