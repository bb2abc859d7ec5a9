"""`attn-kata interview --no-room`: the whole session at a prompt, from choosing a track to the scorecard.

Lines come from a terminal or a pipe. While it waits at a terminal, it checks the clock and the file once a second, so
that it makes announcements and keeps every saved version.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attn_kata.errors import UsageError
from attn_kata.history import History
from attn_kata.interview import actions, control, deadline, moments, plans, runs, words
from attn_kata.interview.control import Desk
from attn_kata.interview.session import Session

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

LOOK_SECONDS = 1.0
_LEAVING = ("quit", "q")


@dataclass(kw_only=True)
class LineMode:
    """A session at a prompt."""

    desk: Desk
    history: History
    engines: Callable[[], AbstractContextManager[Engine]]
    emit: Callable[[str], None]
    warn: Callable[[str], None]
    width: int
    color: bool
    _stack: ExitStack = field(default_factory=ExitStack)
    _engine: Engine | None = None

    def run(self) -> None:
        """Run until the session or the input ends."""
        with self._stack:
            session = self.desk.store.active()
            if session is None:
                session = self._choose()
            else:
                self.emit(actions.resume(self.desk, actions.active(self.desk, self.warn), stay_paused=True))
            while session is not None and not session.over:
                try:
                    going_on = self._step(session)
                except UsageError as problem:
                    self.warn(problem.what)
                    if problem.next_step:
                        self.warn(problem.next_step)
                    going_on = True
                if not going_on:
                    self.warn("" if session.state != "coding" else "The clock still runs.")
                    self.warn("To come back: attn-kata interview")
                    return
                session = self.desk.store.load(session.id)

    def _choose(self) -> Session | None:
        self.emit("A mock interview: a task, a clock, hidden tests, questions, a scorecard.\n")
        self.emit(words.listed_plans(plans.every()))
        while True:
            name = self._line(f"\nPlan, or the name of a kata [{plans.DEFAULT_PLAN}]: ")
            if name is None or name in _LEAVING:
                return None
            try:
                plan = self._plan(name or plans.DEFAULT_PLAN)
                minutes = self._line(f"Minutes [{plans.minutes_text(plan.minutes)}]: ")
                if minutes:
                    plan = plans.with_minutes(plan, plans.minutes_from(minutes))
                coached = self._line("Coached, with findings after every run? [y/N]: ") or ""
                coached_one = coached.lower() in ("y", "yes")
                self.emit(
                    actions.start(
                        self.desk, plan, coached=coached_one, folder=None, history=self.history, engines=self._warm
                    )
                )
                return self.desk.store.active()
            except UsageError as problem:
                self.warn(problem.what)

    def _plan(self, name: str) -> plans.Plan:
        try:
            return plans.named(name)
        except UsageError as no_plan:
            try:
                return plans.of_katas(tuple(name.split()))
            except UsageError:
                raise no_plan from None

    def _step(self, session: Session) -> bool:
        """One prompt and its action; False when the user leaves."""
        session = actions.active(self.desk, self.warn)
        match session.state:
            case "briefing":
                asks = "The number of a question" if session.listed else "A question in your own words"
                asks = f"{asks}, or Enter" if words.may_ask(session) else "Enter"
                typed = self._line(f"\n{asks} to start the clock: ")
                if typed is None or typed in _LEAVING:
                    return False
                if typed:
                    self.emit(actions.ask(self.desk, session, typed))
                else:
                    self._advance(session)
            case "coding":
                left = "paused" if session.paused else moments.clock_text(session.left(moments.read(self.desk.clock)))
                resume = "resume, " if session.paused else ""
                return self._coding(
                    session, self._line(f"\n[{left}] {resume}run, check, submit, ask WORDS, status, quit: ")
                )
            case "follow_up":
                return self._follow_up(session)
            case "review":
                typed = self._line("\nEnter to close the session, or 'show' to see it again: ")
                if typed is None or typed in _LEAVING:
                    return False
                if typed == "show":
                    self.emit(
                        actions.show(self.desk, session, self._warm, self.history, form="terminal", width=self.width)
                    )
                else:
                    self._advance(session)
            case _:  # ready, submitted, time up
                if self._line("\nEnter to go on: ") in (None, *_LEAVING):
                    return False
                self._advance(session)
        return True

    def _coding(self, session: Session, typed: str | None) -> bool:
        if typed is None or typed in _LEAVING:
            return False
        session = actions.active(self.desk, self.warn)  # typing may have taken a while
        word, _, rest = typed.partition(" ")
        if session.state != "coding":
            return True
        if word in ("run", "check"):
            own = word == "run"
            self.emit(runs.run(self.desk, session, self._warm, width=self.width, color=self.color, own=own)[0])
        elif word == "submit":
            self.emit(actions.submit(self.desk, session))
        elif word == "ask":
            self.emit(actions.ask(self.desk, session, rest))
        elif word == "pause":
            control.pause(self.desk, session.id)
        elif word == "resume":
            control.resume(self.desk, session.id)
        elif word in ("", "status"):
            self.emit(actions.status(self.desk, session))
        else:
            raise UsageError(
                f"'{word}' is not a command here.",
                next_step="run, check, submit, ask WORDS, pause, resume, status, quit",
            )
        return True

    def _follow_up(self, session: Session) -> bool:
        """The next question without an answer, or the review."""
        open_ones = [place for place in session.places if place not in session.answers]
        if not open_ones:
            self._advance(session)
            return True
        place = open_ones[0]
        self.emit("\n" + words.follow_up(session, place))
        typed = self._line("Answer (quit to come back later): ")
        if typed is None or typed in _LEAVING:
            return False
        self.emit(actions.answer(self.desk, session, place, typed))
        if session.follow_ups[place - 1]["kind"] == "free":
            points = self._line("Numbers of the points that your answer had: ")
            if points is None:
                return False
            numbers = tuple(_whole(word, "point") for word in points.replace(",", " ").split())
            control.tick_points(self.desk, session.id, place, numbers)
        return True

    def _advance(self, session: Session) -> None:
        told = actions.advance(
            self.desk, session, self._warm, self.history, skip=False, width=self.width, color=self.color
        )
        if self.desk.store.load(session.id).state != "follow_up":  # its questions come one by one
            self.emit(told)

    @contextmanager
    def _warm(self) -> Iterator[Engine]:
        """An engine that runs until the prompt ends."""
        if self._engine is None:
            self._engine = self._stack.enter_context(self.engines())
        yield self._engine

    def _line(self, prompt: str) -> str | None:
        """The next line, stripped; None at the end of the input."""
        sys.stdout.write(prompt)
        sys.stdout.flush()
        if sys.stdin.isatty():
            self._wait(prompt)
        line = sys.stdin.readline()
        if not line:
            sys.stdout.write("\n")
            return None
        return line.strip()

    def _wait(self, prompt: str) -> None:
        """Until there is a line to read: check the clock, and keep saved versions."""
        running = self.desk.store.active()
        told = running.events[-1].number if running is not None else 0
        while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            running = self.desk.store.active()
            if running is None or not running.clock_runs:
                continue
            session = control.tick(self.desk, running.id).session
            control.observe(self.desk, running.id)
            news, told = deadline.said(session, since=told), session.events[-1].number
            for sentence in news:
                self.warn(f"\n{sentence}")
            if news:
                sys.stdout.write(prompt)
                sys.stdout.flush()


def _whole(text: str, what: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise UsageError(f"'{text}' is not the number of a {what}.", next_step="Type a number from the list")
    return int(text[:9])
