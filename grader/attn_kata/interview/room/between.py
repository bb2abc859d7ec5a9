"""The screen between two steps: after handing in, or when the time is up."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from attn_kata import catalog
from attn_kata.interview import control
from attn_kata.interview.room.screens import RoomScreen, Typing, Words


class BetweenScreen(RoomScreen):
    """One sentence, and one key to go on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g,enter", "go_on", "Go on", priority=True, key_display="Enter")
    ]

    def __init__(self, said: str = "") -> None:
        super().__init__()
        self._said = said
        self._typing = Typing()

    def body(self) -> ComposeResult:
        yield Words(self._text(), id="state")

    def _text(self) -> str:
        session = self.session
        if session.state == "time_up":
            told = self._said or "The time is up. Your file was taken as it was on the disk."
            return f"{told}\n\nNext: questions about your code. The clock has stopped. Enter goes on."
        if session.last_stage:
            return "Handed in.\n\nNext: questions about your code. The clock has stopped. Enter goes on."
        coming = session.stages[session.stage + 1].kata
        return f"Handed in. The clock still runs.\n\nNext: {catalog.find(coming).title}. Enter goes on."

    def on_key(self) -> None:
        self._typing.stopped()

    @work(exclusive=True)
    async def action_go_on(self) -> None:
        """Go to the next stage, or to the questions. The time may end while somebody types: Enter waits for a pause."""
        if not self._typing.stopped() and self.session.state == "time_up":
            return
        if await self.room.tried(control.advance, self.room.desk, self.session.id):
            await self.room.look()
