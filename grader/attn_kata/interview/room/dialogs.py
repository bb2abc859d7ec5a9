"""Dialogs, answered by one key: help, a conflict, handing in, leaving, a question to ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from attn_kata.interview.room.screens import Typing, Words
from attn_kata.interview.room.texts import HELP

_Answer = TypeVar("_Answer")


class Dialog(ModalScreen[_Answer]):
    """A dialog that is answered once. Keys that arrive after its answer are lost: they were meant for it."""

    def dismiss(self, result: _Answer | None = None) -> AwaitComplete:
        """Close the dialog, if it is still the screen in front. Textual itself would close whatever is in front now."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Help(Dialog[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,ctrl+o,enter,q,ctrl+q", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog -tall"):
            yield Words(HELP)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


class Choice(Dialog[str | None]):
    """A choice, by its key or with the arrows and Enter. Returns the key, or None for Esc if Esc is allowed.

    A dialog that `must` be answered may appear while somebody types. It ignores keys until the typing stops.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+q", "escape", "Back")]

    def __init__(self, what: str, choices: Sequence[tuple[str, str]], *, must: bool = False) -> None:
        super().__init__()
        self._what, self._choices, self._must = what, choices, must
        self._typing = Typing()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Words(self._what)
            yield OptionList(*(Option(f"{key}  {says}", id=key) for key, says in self._choices), markup=False)

    def on_mount(self) -> None:
        if not self._must:
            self.query_one(OptionList).focus()

    def on_key(self, event: events.Key) -> None:
        listed = self.query_one(OptionList)
        if self._must and not listed.has_focus:
            if not self._typing.stopped():
                return
            listed.focus()
        if event.character in dict(self._choices):
            self.dismiss(event.character)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_id)

    def action_escape(self) -> None:
        """Choose nothing."""
        if not self._must:
            self.dismiss(None)


class Ask(Dialog[str | None]):
    """One line of text. Enter asks, Esc closes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+q", "escape", "Back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Words("Ask in your own words. Enter asks, Esc goes back.")
            yield Input(placeholder="a question about the task", id="ask")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def action_escape(self) -> None:
        """Ask nothing."""
        self.dismiss(None)


def conflict(name: str) -> Choice:
    """The file and the room's text both changed."""
    return Choice(
        f"'{name}' changed on the disk, and you changed it here. The session keeps every version.",
        [
            ("b", "Both: my text stays in the file, the other text becomes a numbered copy beside it"),
            ("m", "Mine: replace the file by my text"),
            ("t", "Theirs: load the file from the disk"),
        ],
        must=True,
    )


def hand_in(stage: str) -> Choice:
    """Confirm handing in."""
    return Choice(f"Hand in {stage}? You cannot change it afterwards.", [("y", "Hand it in"), ("n", "Go on writing")])


def leave(*, clock: bool, review: bool) -> Choice:
    """Leave the room, end the session, or stay."""
    goes_on = "Leave the room; the clock still runs" if clock else "Leave the room; you can come back to the session"
    ends = "Close the interview" if review else "End the interview for good, without a scorecard"
    return Choice("Leave?", [("l", goes_on), ("e", ends), ("s", "Stay")])


def questions(every: Sequence[tuple[str, str | None]]) -> Choice:
    """Choose a question to ask; asked ones show their answers."""
    choices = [(str(n), ask + (f"\n   → {answer}" if answer else "")) for n, (ask, answer) in enumerate(every, 1)]
    return Choice("Which question do you ask?", choices)
