"""Keeps the room's text, the file on the disk and the versions of the session equal.

While the text changes, it is written into the file once a second, so that at most a second is lost. It becomes a version
of the session when the typing pauses, so that the timeline has no half words.
"""

from __future__ import annotations

import asyncio
import time

from textual import work
from textual.widgets import TextArea

from attn_kata import workspace
from attn_kata.errors import UsageError
from attn_kata.interview import control
from attn_kata.interview.draft import Draft, FileChanged
from attn_kata.interview.room import dialogs
from attn_kata.interview.room.editor import Editor
from attn_kata.interview.room.screens import RoomScreen
from attn_kata.interview.session import Session
from attn_kata.interview.storage import NotKept
from attn_kata.interview.store import digest_of

QUIET, LONGEST = 1.0, 5.0  # a version is kept after QUIET seconds without a key, and at least every LONGEST seconds
BREATH = 0.3  # seconds without a key after which no key is expected at once
NEAR_THE_END = 4.0  # in the last seconds, every look keeps a version


class KeepingScreen(RoomScreen):
    """A screen with an editor for the file of a session."""

    def __init__(self, session: Session, source: bytes) -> None:
        super().__init__()
        assert session.file is not None
        self.draft = Draft(session.file, source)
        self._stage = session.stage
        self._saving = asyncio.Lock()
        self._changed: float | None = None  # time of the oldest change that is in no version yet
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
        """The file's name to show."""
        return workspace.shown(self.draft.path)

    def trouble(self) -> str:
        return self._trouble or ("Ctrl+P restarts the clock" if self.session.paused else "")

    def saved(self) -> str:
        return "" if not self.is_mounted else "saving …" if self._changed is not None else "saved"

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._typed = time.monotonic()
        if self._changed is None and self.unsaved:
            self._changed = self._typed
            self.show_clock()

    def freeze(self) -> None:
        """Make the editor read-only in a pause, and for a text that cannot be written back unchanged."""
        self.editor.read_only = self.session.paused or bool(self.editor.odd)

    async def look(self, left: float) -> None:
        """Once a second: load what another editor saved, save typed text, and keep a version when typing pauses."""
        now = time.monotonic()
        keep = self._changed is not None and (
            now - self._typed >= QUIET or now - self._changed >= LONGEST or left <= NEAR_THE_END
        )
        if not self._deciding and not self._saving.locked():
            await self.agree(write=self.unsaved, keep=keep, asked=False)

    async def agree(self, *, write: bool, keep: bool = True, asked: bool = True) -> bool:
        """Make the room's text and the file equal, and `keep` the text as a version of the session.

        False when this is not possible or the user must decide. A user who `asked` for it sees the problem every time.
        """
        async with self._saving:
            if asked:
                self._trouble = ""
            try:
                return await self._agree(write=write, keep=keep)
            except NotKept as problem:
                self._say("NOT KEPT", f"Your text is in its file, but not in the session: {problem.reason}")
                return True  # the next version may be kept again
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
            self._say("NOT SAVED", f"{state.why}. Ctrl+S writes it again")
            return False
        if state.kind != "same" and (write or state.kind == "gone"):
            try:
                await at_desk(self.draft.write, mine)
            except FileChanged:
                return False  # it changed just now: the next look sees it
        if keep and self.draft.base == mine:
            if digest_of(mine) != self.session.kept.get(self._stage):
                await at_desk(control.save, self.room.desk, self.session.id, mine, stage=self._stage)
            self._changed = self._typed if self.unsaved else None
        if keep or not self._trouble.startswith("NOT KEPT"):
            self._say()
        return True

    @work(exclusive=True, group="conflict")
    async def _decide(self) -> None:
        """Both changed: ask what to do, and keep every version."""
        if self._deciding:
            return
        self._deciding = True
        try:
            mine = self.editor.source
            await self.room.tried(control.save, self.room.desk, self.session.id, mine)
            await self.room.tried(control.observe, self.room.desk, self.session.id)
            said = await self.app.push_screen_wait(dialogs.conflict(self.file_name))
            if said is None:  # the time is up, and the screen was closed
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
        state = self.draft.compare(mine)  # the file may have changed during the dialog
        if state.kind == "gone":
            self.draft.write(mine)
        elif state.kind in ("conflict", "theirs"):
            if said == "t":
                self.app.call_from_thread(self._load, state.theirs)
            else:
                if said == "b":
                    copy = self.draft.aside(state.theirs, "file")
                    self.app.call_from_thread(
                        self.room.notify, f"The other text is in {workspace.shown(copy)}", timeout=8
                    )
                self.draft.overwrite(mine, state.theirs)
        control.observe(self.room.desk, self.session.id)

    def rescue(self) -> str:
        """Write the room's text into the file, or beside it, at once and in this thread. For every way to end the room.

        Returns a message, or "" if the text is in its file.
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
        """The stage ended without this text: write it beside the file, if the file differs."""
        mine = self.editor.source
        if self.draft.compare(mine).kind != "same":
            self.room.said.append(said := self._elsewhere(mine))
            self.room.notify(said.splitlines()[0], timeout=15)
        self.draft.base = mine

    def _elsewhere(self, mine: bytes) -> str:
        """Write the text beside the file, or into the temporary folder, or into the message. Returns the message."""
        text = mine.decode("utf-8", "replace")
        try:
            where = workspace.shown(self.draft.aside(mine, "room"))
        except UsageError:
            try:
                where = str(self.draft.in_temporary_folder(mine))
            except OSError:
                return "\n\n".join((f"'{self.file_name}' cannot be written. Copy your text from here:", text))
        return f"The text that was not saved in '{self.file_name}' is in '{where}'."

    def _load(self, source: bytes) -> None:
        self.draft.base = source
        self.editor.load(source)
        self.freeze()

    def _say(self, label: str = "", trouble: str = "") -> None:
        """Show a problem in the clock's line until it is solved, and once as a notice."""
        told = f"{label}: {trouble}" if trouble else ""
        if told and told != self._trouble:
            self.room.notify(trouble, severity="warning", timeout=10)
        self._trouble = told
