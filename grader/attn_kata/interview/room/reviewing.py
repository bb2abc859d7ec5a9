"""The review: the scorecard and its evidence, graded while the candidate answered questions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.worker import get_current_worker

from attn_kata import workspace
from attn_kata.errors import UsageError, why
from attn_kata.interview import actions, control
from attn_kata.interview.room.screens import Pane, RoomScreen
from attn_kata.interview.session import Session


class ReviewScreen(RoomScreen):
    """Scrolls; Ctrl+G closes the session."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g", "close", "Close the interview", priority=True),
        Binding("ctrl+r", "again", "Grade again", show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._seen = session

    def body(self) -> ComposeResult:
        yield Pane("The review", "Grading what you wrote …", id="review")

    def on_mount(self) -> None:
        self.query_one(Pane).focus()
        self.action_again()

    @work(exclusive=True)
    async def action_again(self) -> None:
        """Grade the rest, and show everything."""
        pane, session = self.query_one(Pane), self.session
        worker = get_current_worker()

        def tell(done: int, of: int) -> None:
            if not worker.is_cancelled:
                self.app.call_from_thread(pane.show, f"Grading version {min(done + 1, of)} of {of} …")

        width = max(50, min(110, self.size.width - 6))
        room = self.room
        try:
            told = await room.threads.grading(
                actions.show,
                room.desk,
                session,
                room.engines,
                room.history,
                form="terminal",
                width=width,
                color=True,
                tell=tell,
            )
            page = await room.threads.grading(actions.show, room.desk, session, room.engines, room.history, form="html")
            where = f"The review as a page: {workspace.shown(written(session, page))}"
        except UsageError as problem:
            where = problem.what
        except Exception as problem:
            pane.show(f"{room.tell(problem)}\n\nCtrl+R grades again. Your session is not lost.")
            return
        pane.show(Content.from_rich_text(Text.from_ansi(f"{where}\n\n{told}")))
        pane.border_subtitle = Content(where)  # a string would be read as markup

    @work
    async def action_close(self) -> None:
        """Close the interview."""
        if await self.room.tried(control.advance, self.room.desk, self._seen.id, seen=self._seen):
            self.room.go(
                f"Interview {self.session.id} is closed. To see it: attn-kata interview show {self.session.id}"
            )


def written(session: Session, page: str) -> Path:
    """Write the page into the session's folder. Raises UsageError."""
    path = session.folder / f"review-{session.id}.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".html.new")
        new.write_text(page, encoding="utf-8", errors="replace", newline="\n")
        os.replace(new, path)
    except OSError as problem:
        raise UsageError(
            f"The page cannot be written: {why(problem)}. Another place: attn-kata interview export --output PATH"
        ) from problem
    return path
