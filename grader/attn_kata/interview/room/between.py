"""The screen between two steps: after handing in, or when the time is up."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from attn_kata.interview import control, words
from attn_kata.interview.room.screens import RoomScreen, Typing, Words
from attn_kata.interview.session import Session


class BetweenScreen(RoomScreen):
    """One sentence, and one key to go on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g,enter", "go_on", "Go on", priority=True, key_display="Enter")
    ]

    def __init__(self, session: Session, said: str = "") -> None:
        super().__init__()
        self._seen = session
        self._said = said
        self._typing = Typing()

    def body(self) -> ComposeResult:
        yield Words(self._text(), id="state")

    def _text(self) -> str:
        session = self._seen
        coming = f"Next: {words.coming(session)}."
        if session.state == "time_up":
            told = self._said or "The time is up. Your file was taken as it was on the disk."
            return f"{told}\n\n{coming} The clock has stopped. Enter goes on."
        if session.last_stage:
            return f"Handed in.\n\n{coming} The clock has stopped. Enter goes on."
        return f"Handed in. The clock still runs.\n\n{coming} Enter goes on."

    def on_key(self) -> None:
        self._typing.stopped()

    @work
    async def action_go_on(self) -> None:
        """Go to the next stage, or to the questions. The time may end while somebody types: Enter waits for a pause."""
        if not self._typing.stopped() and self._seen.state == "time_up":
            return
        await self.step(control.advance, self.room.desk, self._seen.id, seen=self._seen)
