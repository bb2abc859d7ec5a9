"""Coding: the task, the editor, the output of a run."""

from __future__ import annotations

import time
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content

from attn_kata.interview import actions, control, runs, words
from attn_kata.interview.room import dialogs, texts
from attn_kata.interview.room.briefing import asked
from attn_kata.interview.room.editor import Editor
from attn_kata.interview.room.keeping import KeepingScreen
from attn_kata.interview.room.screens import Pane, Words
from attn_kata.interview.room.tabs import PANES, Tabs
from attn_kata.interview.session import Session

_SHARES = ("both", "code", "task", "result")  # which pane is the widest, or the highest


class CodingScreen(KeepingScreen):
    """One stage."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,f5", "run(True)", "Run", priority=True, key_display="^r"),
        Binding("ctrl+l,f8", "run(False)", "Check", priority=True, key_display="^l"),
        Binding("ctrl+g", "submit", "Hand in", priority=True),
        Binding("ctrl+t", "turn", "Pane", priority=True),
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("ctrl+b", "ask", "Ask", priority=True),
        Binding("f9,alt+w", "widen", "Widen", priority=True, show=False),
        Binding("f10,alt+z", "wrap", "Wrap", priority=True, show=False),
        Binding("ctrl+p", "pause", "Pause", priority=True),
        Binding("ctrl+p", "go_on", "Go on", priority=True),
        *(Binding(f"f{n}", f"front('{pane}')", pane, show=False, priority=True) for n, pane in enumerate(PANES, 2)),
    ]

    def __init__(self, session: Session, source: bytes) -> None:
        super().__init__(session, source)
        self._run_on = self._handing_in = False
        self._share = _SHARES[0]
        self._paused = session.paused
        self._hints = len(session.hints)

    def body(self) -> ComposeResult:
        yield Tabs()
        with Container(id="panes"):
            yield Pane("Task (F2)", texts.task(self.session), id="task")
            yield Editor()
            begin = texts.BEGIN.format(file=self.file_name, run=texts.RUNS[self.session.mode])
            yield Pane("Output (F4)", f"{begin}\n\n{words.strays(self.session)}".rstrip(), id="output")

    def on_mount(self) -> None:
        self.editor.load(self.draft.base)
        self.freeze()
        self.editor.to_first_gap()
        self.action_front("editor")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a coached session can pause, and only a paused one can go on."""
        if action in ("pause", "go_on"):
            return self.session.mode == "coached" and self.session.paused == (action == "go_on")
        return True

    @work(group="save")
    async def action_save(self) -> None:
        """Save now."""
        await self.agree(write=True)

    @work(group="run")
    async def action_run(self, own: bool = True) -> None:
        """Save, run the file with its `own` tests, or check it, and show the result."""
        if self._run_on:
            self.room.notify("It is still running.", timeout=3)
            return
        if not await self.agree(write=True):
            return
        self._run_on = True
        output = self.query_one("#output", Pane)
        self._show_run("running …")
        if self.has_class("-narrow"):
            self.action_front("output")
        try:
            width = self.size.width - 4 if self.has_class("-narrow") else output.query_one(Words).size.width
            width = max(20, width)  # a narrow terminal does not show the pane yet
            session, engine = self.session, self.room.engines
            told, _ = await self.room.threads.grading(
                runs.run, self.room.desk, session, engine, width=width, color=True, own=own
            )
            back = "\n\nBack to your code: F3" if self.has_class("-narrow") else ""
            shown = Content.from_rich_text(Text.from_ansi(told.rstrip() + back))
        except Exception as problem:
            if not self.is_attached:  # handed in, or the time is up: the run is no longer needed
                return
            shown = Content(self.room.tell(problem))
        finally:
            self._run_on = False
        if self.is_attached:  # the time may be up by now
            # A run ends with its verdict, below the code's prints; a coached check begins with it.
            output.show(shown, end=own or self.session.mode == "mock")
            self._show_run(f"run at {time.strftime('%H:%M:%S')}")

    def _show_run(self, run: str) -> None:
        self.query_one("#output", Pane).border_title = f"Output (F4): {run}"
        self.query_one(Tabs).show(run=run)

    @work(group="submit")
    async def action_submit(self) -> None:
        """Save, ask for confirmation, hand in."""
        if self._handing_in:
            return
        self._handing_in = True
        try:
            await self._submit()
        finally:
            self._handing_in = False

    async def _submit(self) -> None:
        with self.room.keys.held():  # a key that comes before the dialog is meant for it, not for the editor
            if not await self.agree(write=True):
                return
        count = sum(1 for one in self.session.stages if one.timed)
        stage = f"stage {self._stage + 1} of {count}" if count > 1 else "your code"
        meant = await self.app.push_screen_wait(dialogs.hand_in(stage)) == "y"
        if meant and await self.agree(write=True):
            await self.step(control.submit, self.room.desk, self.session.id, self.draft.base, stage=self._stage)

    @work(group="ask")
    async def action_ask(self) -> None:
        """Ask a question while the clock runs."""
        if not words.may_ask(self.session):
            self.room.notify("This round leaves nothing open to ask about.", timeout=5)
            return
        said = await self.app.push_screen_wait(
            dialogs.questions(asked(self.session)) if self.session.listed else dialogs.Ask()
        )
        told: list[str] = []
        if said is not None and await self.step(lambda: told.append(actions.ask(self.room.desk, self.session, said))):
            for pane in self.query("#task").results(Pane):
                pane.show(texts.task(self.session))
            self.room.notify(texts.unwrapped(told[0]), timeout=15)

    @work(group="pause")
    async def action_pause(self) -> None:
        """Stop the clock."""
        await self.agree(write=True)
        await self.step(control.pause, self.room.desk, self.session.id)

    @work(group="pause")
    async def action_go_on(self) -> None:
        """Restart the clock."""
        await self.step(control.resume, self.room.desk, self.session.id)

    def show_clock(self) -> None:
        super().show_clock()
        if self.is_mounted and len(self.session.hints) != self._hints:
            self._hints = len(self.session.hints)
            self.query_one("#task", Pane).show(texts.task(self.session), end=True)
            self.room.notify(words.hints(self.session)[-1], title="A hint of your interviewer", timeout=30)
        if self.is_mounted and self.session.paused != self._paused:  # here, or in another terminal
            self._paused = self.session.paused
            self.freeze()
            self.refresh_bindings()

    def action_widen(self) -> None:
        """The next share of the screen for the task and the code, on a wide terminal."""
        self._share = _SHARES[(_SHARES.index(self._share) + 1) % len(_SHARES)]
        panes = self.query_one("#panes")
        for share in _SHARES:
            panes.set_class(share == self._share, f"-{share}")

    def action_wrap(self) -> None:
        """Wrap long lines of the code, or show them as they are."""
        self.editor.soft_wrap = not self.editor.soft_wrap

    def action_turn(self) -> None:
        """The next pane."""
        self.action_front(self.query_one(Tabs).next)

    def action_front(self, pane: str) -> None:
        """Go to a pane; a narrow terminal shows only this one."""
        for name in PANES:
            self.query_one(f"#{name}").set_class(name == pane, "-front")
        self.query_one(Tabs).show(front=pane)
        self.query_one(f"#{pane}").focus()
