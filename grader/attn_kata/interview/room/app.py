"""The room itself: the session's state decides which screen is shown, even if another terminal changed it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec

from textual import events, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from attn_kata.errors import AttnKataError, UsageError
from attn_kata.history import History, home
from attn_kata.interview import actions, control, deadline, moments, review, words
from attn_kata.interview.attempts import written
from attn_kata.interview.control import Desk
from attn_kata.interview.deadline import LATE_SECONDS
from attn_kata.interview.room import dialogs
from attn_kata.interview.room.between import BetweenScreen
from attn_kata.interview.room.briefing import BriefingScreen
from attn_kata.interview.room.choosing import ChoosingScreen
from attn_kata.interview.room.coding import CodingScreen
from attn_kata.interview.room.garbage import Garbage
from attn_kata.interview.room.keys import STEPS, Bursts
from attn_kata.interview.room.presence import Presence
from attn_kata.interview.room.questions import QuestionsScreen
from attn_kata.interview.room.reviewing import ReviewScreen
from attn_kata.interview.room.screens import RoomScreen
from attn_kata.interview.room.threads import Threads
from attn_kata.interview.session import Session

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

_P = ParamSpec("_P")
LOOK_SECONDS = 1.0
_STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Room(App[str]):
    """One person, one session. `run` returns a text to print after the screen is closed."""

    CSS_PATH = Path(__file__).with_name("room.tcss")
    TITLE = "attn-kata interview"
    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-short"), (16, "-tall")]  # noqa: RUF012 (Textual declares it so)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "leave", "Leave", priority=True)]

    def __init__(
        self,
        *,
        desk: Desk,
        history: History,
        engine: Engine,
        heard: Sequence[str] = (),
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """`heard` gets the warnings of the store, from any thread; they are shown at the next look."""
        super().__init__()
        self._heard, self._shown = heard, len(heard)
        self.desk, self.history, self.engine = desk, history, engine
        self.threads = Threads()
        self.presence = Presence(home())
        self.session: Session | None = None
        self.stopped: int | None = None  # the signal that ended the room
        self.said: list[str] = []  # printed again after the screen is closed
        self.trouble = ""  # why the session cannot be read
        self._look_seconds = look_seconds
        self._showing: tuple[str, int] | None = None
        self._told = 0  # the event up to which the clock's sentences were shown
        self._looking = asyncio.Lock()
        self._graded_ahead: int | None = None
        self._garbage = Garbage()
        self.keys = Bursts()

    @contextmanager
    def engines(self) -> Iterator[Engine]:
        """The warm engine, for calls that would start one."""
        yield self.engine

    def left(self) -> float:
        """Seconds left, by the clock alone."""
        return self.session.left(moments.read(self.desk.clock)) if self.session is not None else 0.0

    # Coming and going -------------------------------------------------------------------------------------------------

    async def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _STOPPING:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self._stop, number)
        self._garbage.begin()
        await self.come_in()
        if self._look_seconds:
            self.set_interval(self._look_seconds, self._beat)

    async def come_in(self) -> None:
        """Show the running session, or the list of plans."""
        said: list[str] = []

        def arrive() -> Session | None:
            running = self.desk.store.active()
            if running is None:
                return None
            actions.resume(self.desk, actions.active(self.desk, said.append), stay_paused=True)
            session = self.desk.store.load(running.id)
            before = self.presence.arrive(session.id)
            if session.state == "coding":
                said.extend(sentence for sentence in (before, words.strays(session)) if sentence)
            return session

        try:
            session = await self.threads.at_desk(arrive)
        except AttnKataError as problem:
            self.tell(problem)
            session = await self.threads.at_desk(self.desk.store.active)
        self._tell_heard()
        for sentence in said:
            self.notify(sentence, timeout=15)
        if session is None:
            await self._switch(ChoosingScreen())
        else:
            await self._enter(session, " ".join(said))

    def go(self, said: str) -> None:
        """Leave, and print `said` afterwards."""
        cancel = getattr(self.engine, "cancel", None)
        if cancel is not None:
            cancel()  # the review repeats a grading that was cancelled
        self.exit("\n".join(part for part in (said, *self.said, self.rescue()) if part))

    def rescue(self) -> str:
        """Write the room's text to the disk, whatever happens."""
        return "".join(one.rescue() for one in self._stack() if isinstance(one, CodingScreen))

    @work(group="leave")
    async def action_leave(self) -> None:
        """Ask whether to end the session, and leave."""
        session = self.session
        if session is None:
            self.go("Start one: attn-kata interview")
            return
        if isinstance(self.screen, ModalScreen):
            return
        said = await self.push_screen_wait(dialogs.leave(clock=session.clock_runs, review=session.state == "review"))
        if said == "e":
            if isinstance(self.screen, CodingScreen):
                await self.screen.agree(write=True)
            if await self.tried(control.end, self.desk, session.id):
                self.go(f"Interview {session.id} is over. To see it again: attn-kata interview show {session.id}")
        elif said == "l":
            if isinstance(self.screen, CodingScreen):
                await self.screen.agree(write=True)
            self.go(self.goes_on())

    def close(self) -> None:
        """End the threads, after the screen is closed."""
        self.threads.close()
        self.presence.leave()
        self._garbage.end()

    def goes_on(self) -> str:
        """The text for somebody who leaves."""
        assert self.session is not None
        clock = words.clock(self.session, moments.read(self.desk.clock)) if self.session.clock_runs else ""
        runs = f"The clock still runs. {clock}\n" if clock else ""
        return f"Interview {self.session.id} is not over. {runs}To come back: attn-kata interview"

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(dialogs.Help())

    def _stop(self, number: int) -> None:
        self.stopped = number
        self.go(self.goes_on() if self.session is not None else "")

    async def on_event(self, event: events.Event) -> None:
        """Drop the rest of a burst of keys whose first key has changed the screen."""
        if isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded and self.screen_stack:
            if not self.keys.passes(self.screen, event.time):
                return
            await super().on_event(event)
            if isinstance(event, events.Key) and event.key in STEPS:
                self.keys.shut()
            return
        await super().on_event(event)

    def notify(self, message: str, *, markup: bool = False, **named: Any) -> None:
        """Like Textual's, but without markup: a message may contain the name of a file."""
        super().notify(message, markup=markup, **named)

    # What happens -----------------------------------------------------------------------------------------------------

    async def tried(self, call: Callable[_P, object], *args: _P.args, **named: _P.kwargs) -> bool:
        """Make a call at the desk. Returns False when it was refused, and shows the error."""
        try:
            await self.threads.at_desk(call, *args, **named)
        except AttnKataError as problem:
            self.tell(problem)
            return False
        return True

    def tell(self, problem: Exception) -> str:
        """Show and return the text of a refusal or a bug."""
        if isinstance(problem, AttnKataError):
            told = f"{problem.what}\n{problem.next_step or ''}".strip()
        else:
            told = f"This is a bug in attn-kata, not in your code: {problem}"
        refused = isinstance(problem, UsageError)
        self.notify(told, severity="warning" if refused else "error", timeout=10)
        return told

    def _tell_heard(self) -> None:
        """Show new warnings of the store: nobody sees stderr behind the screen."""
        for sentence in self._heard[self._shown :]:
            self.notify(sentence, severity="error", timeout=60)
        self._shown = len(self._heard)

    def _beat(self) -> None:
        if not any(one.typing for one in self._stack() if isinstance(one, CodingScreen)):
            self._garbage.pause()
        if not self._looking.locked():
            self.run_worker(self.look(), group="look")

    async def look(self) -> None:
        """Update the clock, the file, and changes by other terminals; once a second, and after every action here."""
        async with self._looking:
            if self.session is None or self.session.over:
                return
            coding = next((one for one in self._stack() if isinstance(one, CodingScreen)), None)
            left = self.left()
            if coding is not None and left > -LATE_SECONDS:
                await coding.look(left)
            try:
                tick = await self.threads.at_desk(control.tick, self.desk, self.session.id)
            except AttnKataError as problem:
                self._tell_heard()
                if problem.what != self.trouble:  # not every second
                    self.tell(problem)
                self.trouble = problem.what
                self._show_clocks()
                return
            self.trouble = ""
            news = deadline.said(tick.session, since=self._told)  # a host or another room may have kept them
            for sentence in news:
                self.notify(sentence, timeout=15, title="Time")
            await self._enter(tick.session, " ".join(news))

    async def _enter(self, session: Session, said: str = "") -> None:
        """Show the screen of the session's state, if it changed."""
        self.session, self._told = session, session.events[-1].number
        showing = (session.state, session.stage)
        if showing != self._showing:
            for one in self._stack():
                if isinstance(one, CodingScreen):
                    await self.tried(one.put_aside) if session.state != "submitted" else None
            self._showing = showing
            screen = await self._screen(session, said)
            if screen is None:
                self.go(f"Interview {session.id} is over. To see it: attn-kata interview show {session.id}")
                return
            await self._switch(screen)
            self._grade_ahead(session)
        self._show_clocks()

    def _show_clocks(self) -> None:
        for one in self._stack():
            if isinstance(one, RoomScreen):
                one.show_clock()

    async def _screen(self, session: Session, said: str) -> RoomScreen | None:
        if session.state == "coding":
            assert session.file is not None
            found = await self.threads.at_desk(written, session.file)
            source = found.source
            if source is None:
                kept = session.kept[session.stage]
                source = await self.threads.at_desk(self.desk.store.source, session.id, kept)
            return CodingScreen(session, source)
        if session.state in ("submitted", "time_up"):
            return BetweenScreen(session, said)
        made = {
            "ready": BriefingScreen,
            "briefing": BriefingScreen,
            "follow_up": QuestionsScreen,
            "review": ReviewScreen,
        }
        return made[session.state](session) if session.state in made else None

    async def _switch(self, screen: RoomScreen) -> None:
        while isinstance(self.screen, ModalScreen):
            await self.screen.dismiss(None)
        await (self.switch_screen(screen) if len(self.screen_stack) > 1 else self.push_screen(screen))
        self._garbage.settle()

    def _stack(self) -> list[object]:
        return list(self.screen_stack) if self.is_running else []

    def _grade_ahead(self, session: Session) -> None:
        """Grade the final code while the candidate answers questions, so that the review is ready sooner."""
        after = not session.clock_runs and session.state in ("submitted", "time_up", "follow_up")
        if after and self._graded_ahead != session.id:
            self._graded_ahead = session.id
            self.run_worker(self._graded(session), group="ahead", exit_on_error=False)

    async def _graded(self, session: Session) -> None:
        with contextlib.suppress(Exception):  # the review grades again, and shows the error
            await self.threads.grading(review.grade, self.desk.store, session, self.engine)
