"""Coding: the task, the editor, what a run said. The room's text and the file are kept the same here."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import TextArea

from attn_kata import workspace
from attn_kata.errors import UsageError
from attn_kata.interview import actions, content, control
from attn_kata.interview.room import dialogs, texts
from attn_kata.interview.room.briefing import asked
from attn_kata.interview.room.draft import Draft, FileChanged
from attn_kata.interview.room.editor import Editor
from attn_kata.interview.room.screens import Pane, RoomScreen
from attn_kata.interview.room.tabs import PANES, Tabs
from attn_kata.interview.session import Session
from attn_kata.interview.store import digest_of

QUIET, LONGEST = 1.0, 5.0  # seconds without a key after which the text is saved, and without a save at most
NEAR_THE_END = 4.0  # seconds left from which every look saves


class CodingScreen(RoomScreen):
    """One stage."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,f5", "run", "Run", priority=True, key_display="^r"),
        Binding("ctrl+g", "submit", "Hand in", priority=True),
        Binding("ctrl+t", "turn", "Next pane", priority=True),
        Binding("ctrl+s", "save", "Save", priority=True),
        Binding("ctrl+b", "ask", "Ask", priority=True),
        Binding("ctrl+p", "pause", "Pause", priority=True),
        *(Binding(f"f{n}", f"front('{pane}')", pane, show=False, priority=True) for n, pane in enumerate(PANES, 2)),
    ]

    def __init__(self, session: Session, source: bytes) -> None:
        super().__init__()
        assert session.file is not None
        self.draft = Draft(session.file, source)
        self._stage = session.stage
        self._saving = asyncio.Lock()
        self._changed: float | None = None  # when the oldest unsaved change was made, and the newest
        self._typed = 0.0
        self._deciding = self._run_on = False
        self._trouble = ""

    def body(self) -> ComposeResult:
        yield Tabs()
        with Container(id="panes"):
            yield Pane("Task (F2)", texts.task(self.session), id="task")
            yield Editor()
            begin = texts.BEGIN.format(file=workspace.shown(self.draft.path))
            yield Pane("Output (F4)", begin, id="output")

    def on_mount(self) -> None:
        self.editor.load(self.draft.base)
        self.freeze()
        self.action_front("editor")

    @property
    def editor(self) -> Editor:
        return self.query_one(Editor)

    @property
    def unsaved(self) -> bool:
        """Whether the room's text is not on the disk."""
        return self.editor.source != self.draft.base

    @property
    def typing(self) -> bool:
        """Whether a key was pressed just now."""
        return time.monotonic() - self._typed < QUIET

    def saved(self) -> str:
        if self._trouble:
            return self._trouble
        return "" if not self.is_mounted else "not saved yet" if self._changed is not None else "saved"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a coached session pauses."""
        return action != "pause" or self.session.mode == "coached"

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._typed = time.monotonic()
        if self._changed is None and self.unsaved:
            self._changed = self._typed
            self.show_clock()

    def freeze(self) -> None:
        """A paused session cannot be written in, and neither can a text that could not be given back unchanged."""
        self.editor.read_only = self.session.paused or bool(self.editor.odd)

    # The file ---------------------------------------------------------------------------------------------------------

    async def look(self, left: float) -> None:
        """Once a second: bring over what another editor saved, and save what was typed, after a second of quiet."""
        now = time.monotonic()
        due = self._changed is not None and (
            now - self._typed >= QUIET or now - self._changed >= LONGEST or left <= NEAR_THE_END
        )
        if not self._deciding and not self._saving.locked():
            await self.agree(write=due)

    async def agree(self, *, write: bool) -> bool:
        """Make the room's text and the file the same; False where that needs the person, or is not possible."""
        async with self._saving:
            try:
                return await self._agree(write=write)
            except UsageError as problem:
                self._say(problem.what)
                return False
            finally:
                if not self.unsaved:
                    self._changed = None
                self.show_clock()

    async def _agree(self, *, write: bool) -> bool:
        mine, at_desk = self.editor.source, self.room.threads.at_desk
        state = await at_desk(self.draft.compare, mine)
        if state.kind == "theirs":
            await at_desk(control.observe, self.room.desk, self.session.id)
            if self.editor.source == mine:  # nothing was typed meanwhile
                self.draft.base = state.theirs
                self.editor.load(state.theirs)
                self.freeze()
                self.room.notify(f"Loaded from the disk: {self._file_name}", timeout=3)
            return True
        if state.kind == "conflict":
            self._decide()
            return False
        if state.kind == "gone" and not write:
            self._say(f"{state.why}; Ctrl+S writes it again")
            return False
        if state.kind != "same" and (write or state.kind == "gone"):
            try:
                await at_desk(self.draft.write, mine)
            except FileChanged:
                return False  # at this moment: the next look sees it
        self._say("")
        if self.draft.base == mine and digest_of(mine) != self.session.kept.get(self._stage):
            await at_desk(control.save, self.room.desk, self.session.id, mine)
        return True

    @work(exclusive=True, group="conflict")
    async def _decide(self) -> None:
        """Both changed: ask, and keep every version whatever is said."""
        if self._deciding:
            return
        self._deciding = True
        try:
            mine = self.editor.source
            await self.room.tried(control.save, self.room.desk, self.session.id, mine)
            await self.room.tried(control.observe, self.room.desk, self.session.id)
            said = await self.app.push_screen_wait(dialogs.conflict(self._file_name))
            if said is None:  # the screen was left under it, by the clock
                return
            async with self._saving:
                await self.room.tried(self._settle, said, mine)
        finally:
            self._deciding = False
        if not self.unsaved:
            self._changed = None
        self.freeze()
        self.show_clock()

    def _settle(self, said: str, mine: bytes) -> None:
        state = self.draft.compare(mine)  # it may have been saved again while the question stood
        if state.kind == "gone":
            self.draft.write(mine)
        elif state.kind in ("conflict", "theirs"):
            if said == "t":
                self.draft.base = state.theirs
                self.app.call_from_thread(self.editor.load, state.theirs)
            else:
                if said == "b":
                    copy = self.draft.aside(state.theirs, "file")
                    self.app.call_from_thread(self.room.notify, f"The other one: {workspace.shown(copy)}", timeout=8)
                self.draft.overwrite(mine, state.theirs)
        control.observe(self.room.desk, self.session.id)

    def rescue(self) -> str:
        """Whatever happens to the room: its text onto the disk, or beside the file. At once, in this thread."""
        if not self.is_mounted or not self.unsaved:
            return ""
        mine = self.editor.source
        try:
            with contextlib.suppress(FileChanged):
                self.draft.write(mine)
                return ""
            return f"Your text of the room is in '{workspace.shown(self.draft.aside(mine, 'room'))}'."
        except UsageError as problem:
            return problem.what

    def put_aside(self) -> None:
        """The stage ended without this text: it is written beside the file, where the file has another one."""
        mine = self.editor.source
        if self.draft.compare(mine).kind != "same":
            copy = self.draft.aside(mine, "room")
            self.room.notify(f"What was not saved in time is in {workspace.shown(copy)}", timeout=15)
        self.draft.base = mine

    # What is done -----------------------------------------------------------------------------------------------------

    @work(group="save")
    async def action_save(self) -> None:
        """Save now."""
        await self.agree(write=True)

    @work(group="run")
    async def action_run(self) -> None:
        """Save, run, show what came of it."""
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
            width = max(40, output.size.width - 2)
            session, engine = self.session, self.room.engines
            told, _ = await self.room.threads.grading(
                actions.run, self.room.desk, session, engine, width=width, color=True
            )
            output.show(Content.from_rich_text(Text.from_ansi(told)))
        except Exception as problem:
            output.show(self.room.tell(problem))
        finally:
            self._run_on = False
            self._show_run(f"run at {time.strftime('%H:%M:%S')}")

    def _show_run(self, run: str) -> None:
        self.query_one("#output", Pane).border_title = f"Output (F4): {run}"
        self.query_one(Tabs).show(run=run)

    @work(group="submit", exclusive=True)
    async def action_submit(self) -> None:
        """Save, ask whether it is meant, hand in."""
        if not await self.agree(write=True):
            return
        stage = (
            f"stage {self._stage + 1} of {len(self.session.stages)}" if len(self.session.stages) > 1 else "your code"
        )
        meant = await self.app.push_screen_wait(dialogs.hand_in(stage)) == "y"
        if meant and await self.agree(write=True):
            await self.room.tried(control.submit, self.room.desk, self.session.id, self.draft.base)
            await self.room.look()

    @work(group="ask", exclusive=True)
    async def action_ask(self) -> None:
        """Ask a question, though the clock runs."""
        said = await self.app.push_screen_wait(dialogs.questions(asked(self.session)))
        if said is not None and await self.room.tried(control.ask, self.room.desk, self.session.id, int(said)):
            await self.room.look()
            for pane in self.query("#task").results(Pane):
                pane.show(texts.task(self.session))
            self.room.notify(content.of_kata(self.session.kata).questions[int(said) - 1].answer, timeout=15)

    @work(group="pause", exclusive=True)
    async def action_pause(self) -> None:
        """Stop the clock, or let it go on."""
        await self.agree(write=True)
        change = control.resume if self.session.paused else control.pause
        if await self.room.tried(change, self.room.desk, self.session.id):
            await self.room.look()
            if self.is_attached:
                self.freeze()

    def action_turn(self) -> None:
        """The next pane."""
        self.action_front(self.query_one(Tabs).next)

    def action_front(self, pane: str) -> None:
        """Go to a pane; where the terminal is narrow, show it instead of the others."""
        for name in PANES:
            self.query_one(f"#{name}").set_class(name == pane, "-front")
        self.query_one(Tabs).show(front=pane)
        self.query_one(f"#{pane}").focus()

    @property
    def _file_name(self) -> str:
        return workspace.shown(self.draft.path)

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            self.room.notify(trouble, severity="warning", timeout=10)
        self._trouble = trouble and f"NOT SAVED: {trouble}"
