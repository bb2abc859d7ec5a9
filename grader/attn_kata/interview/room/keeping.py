"""The room's text, the file on the disk and the versions of the session, kept the same.

The text goes into the file once a second while it changes, and into the session as a version when the typing pauses:
nobody wants to read half a word in the timeline, and nobody wants to lose more than a second.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from textual import work
from textual.widgets import TextArea

from attn_kata import workspace
from attn_kata.errors import UsageError
from attn_kata.interview import control
from attn_kata.interview.attempts import temporary
from attn_kata.interview.room import dialogs
from attn_kata.interview.room.draft import Draft, FileChanged
from attn_kata.interview.room.editor import Editor
from attn_kata.interview.room.screens import RoomScreen
from attn_kata.interview.session import Session
from attn_kata.interview.storage import NotKept
from attn_kata.interview.store import digest_of

QUIET, LONGEST = 1.0, 5.0  # seconds without a key after which a version is kept, and without a version at most
BREATH = 0.3  # seconds without a key after which the next one is not expected at once
NEAR_THE_END = 4.0  # seconds left from which every look keeps one


class KeepingScreen(RoomScreen):
    """What has an editor on the file of a session."""

    def __init__(self, session: Session, source: bytes) -> None:
        super().__init__()
        assert session.file is not None
        self.draft = Draft(session.file, source)
        self._stage = session.stage
        self._saving = asyncio.Lock()
        self._changed: float | None = None  # when the oldest change was made of which there is no version yet
        self._typed = 0.0
        self._deciding = False
        self._trouble = ""

    @property
    def editor(self) -> Editor:
        """The room's text."""
        return self.query_one(Editor)

    @property
    def unsaved(self) -> bool:
        """Whether the room's text is not on the disk."""
        return self.editor.source != self.draft.base

    @property
    def typing(self) -> bool:
        """Whether a key was pressed just now."""
        return time.monotonic() - self._typed < BREATH

    @property
    def file_name(self) -> str:
        """The file, as a person reads it."""
        return workspace.shown(self.draft.path)

    def trouble(self) -> str:
        return self._trouble or ("Ctrl+P lets the clock go on" if self.session.paused else "")

    def saved(self) -> str:
        return "" if not self.is_mounted else "saving …" if self._changed is not None else "saved"

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._typed = time.monotonic()
        if self._changed is None and self.unsaved:
            self._changed = self._typed
            self.show_clock()

    def freeze(self) -> None:
        """A paused session cannot be written in, and neither can a text that could not be given back unchanged."""
        self.editor.read_only = self.session.paused or bool(self.editor.odd)

    async def look(self, left: float) -> None:
        """Once a second: bring over what another editor saved, save what was typed, and keep it when typing pauses."""
        now = time.monotonic()
        keep = self._changed is not None and (
            now - self._typed >= QUIET or now - self._changed >= LONGEST or left <= NEAR_THE_END
        )
        if not self._deciding and not self._saving.locked():
            await self.agree(write=self.unsaved, keep=keep, asked=False)

    async def agree(self, *, write: bool, keep: bool = True, asked: bool = True) -> bool:
        """Make the room's text and the file the same, and `keep` it as a version of the session.

        False where that needs the person, or is not possible: somebody who `asked` for it is told so every time.
        """
        async with self._saving:
            if asked:
                self._trouble = ""
            try:
                return await self._agree(write=write, keep=keep)
            except NotKept as problem:
                self._say("NOT KEPT", f"Your text is in its file, but not in the session: {problem.reason}")
                return True  # what comes next may be kept again
            except UsageError as problem:
                self._say("NOT SAVED", problem.what)
                return False
            finally:
                self.show_clock()

    async def _agree(self, *, write: bool, keep: bool) -> bool:
        mine, at_desk = self.editor.source, self.room.threads.at_desk
        state = await at_desk(self.draft.compare, mine)
        if state.kind == "theirs":
            await at_desk(control.observe, self.room.desk, self.session.id)
            if self.editor.source == mine:  # nothing was typed meanwhile
                self._load(state.theirs)
                self.room.notify(f"Loaded from the disk: {self.file_name}", timeout=3)
            return True
        if state.kind == "conflict":
            self._decide()
            return False
        if state.kind == "gone" and not write:
            self._say("NOT SAVED", f"{state.why}; Ctrl+S writes it again")
            return False
        if state.kind != "same" and (write or state.kind == "gone"):
            try:
                await at_desk(self.draft.write, mine)
            except FileChanged:
                return False  # at this moment: the next look sees it
        if keep and self.draft.base == mine:
            if digest_of(mine) != self.session.kept.get(self._stage):
                await at_desk(control.save, self.room.desk, self.session.id, mine)
            self._changed = self._typed if self.unsaved else None
        if keep or not self._trouble.startswith("NOT KEPT"):
            self._say()
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
            said = await self.app.push_screen_wait(dialogs.conflict(self.file_name))
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
                self.app.call_from_thread(self._load, state.theirs)
            else:
                if said == "b":
                    copy = self.draft.aside(state.theirs, "file")
                    self.app.call_from_thread(self.room.notify, f"The other one: {workspace.shown(copy)}", timeout=8)
                self.draft.overwrite(mine, state.theirs)
        control.observe(self.room.desk, self.session.id)

    def rescue(self) -> str:
        """Whatever happens to the room: its text onto the disk, or beside the file. At once, in this thread.

        Gives what is to be said of it, "" where the text is in its file.
        """
        if not self.is_mounted or not self.unsaved:
            return ""
        mine = self.editor.source
        try:
            self.draft.write(mine)
        except (FileChanged, UsageError):
            return self._elsewhere(mine)
        return ""

    def put_aside(self) -> None:
        """The stage ended without this text: it is written beside the file, where the file has another one."""
        mine = self.editor.source
        if self.draft.compare(mine).kind != "same":
            self.room.said.append(said := self._elsewhere(mine))
            self.room.notify(said.splitlines()[0], timeout=15)
        self.draft.base = mine

    def _elsewhere(self, mine: bytes) -> str:
        """Put the text beside the file, else among the temporary files, else into what is said; say where it is."""
        text = mine.decode("utf-8", "replace")
        try:
            where = workspace.shown(self.draft.aside(mine, "room"))
        except UsageError:
            try:
                with tempfile.NamedTemporaryFile(prefix=temporary(self.draft.path), suffix=".py", delete=False) as file:
                    file.write(mine)
                where = str(Path(file.name))
            except OSError:
                return "\n\n".join((f"'{self.file_name}' cannot be written. Your text, to be copied from here:", text))
        return f"What was not saved in '{self.file_name}' is in '{where}'."

    def _load(self, source: bytes) -> None:
        self.draft.base = source
        self.editor.load(source)
        self.freeze()

    def _say(self, label: str = "", trouble: str = "") -> None:
        """What stands in the clock's line until it is over; a notice, once."""
        told = f"{label}: {trouble}" if trouble else ""
        if told and told != self._trouble:
            self.room.notify(trouble, severity="warning", timeout=10)
        self._trouble = told
