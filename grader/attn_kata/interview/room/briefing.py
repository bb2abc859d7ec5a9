"""The briefing: the task, and the questions to ask before the clock runs."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from attn_kata.interview import actions, content, control, words
from attn_kata.interview.room import texts
from attn_kata.interview.room.screens import Pane, RoomScreen
from attn_kata.interview.session import Session


def asked(session: Session) -> list[tuple[str, str | None]]:
    """Every question of this stage, with the answers to the asked ones."""
    if not words.may_ask(session):
        return []
    return [
        (one.ask, one.answer if (session.stage, number) in session.asked else None)
        for number, one in enumerate(content.of_kata(session.kata).questions, 1)
    ]


class BriefingScreen(RoomScreen):
    """Questions in one's own words, or from the list; Ctrl+G starts the clock."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g", "begin", "Start the clock", priority=True),
        Binding("pagedown", "turn(1)", "Read on", priority=True, key_display="PgDn"),
        Binding("tab", "app.focus_next", "Task or questions", show=True),
        Binding("pageup", "turn(-1)", "Read back", priority=True, show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._seen = session
        self._told = [f"{one}\n→ {answer}" for one, answer in asked(session) if answer]

    def body(self) -> ComposeResult:
        with Container(id="panes"):
            yield Pane("The task", texts.task(self.session), id="task")
            if words.may_ask(self.session) and self.session.listed:
                listed = OptionList(id="questions", markup=False)
                listed.border_title = "Questions: Enter asks"
                yield listed
            elif words.may_ask(self.session):
                with Vertical(id="questions"):
                    yield Input(placeholder="Ask in your own words; Enter asks", id="ask", compact=True)
                    yield Pane("Answers", texts.ASK, id="answers")

    def on_mount(self) -> None:
        self._show()
        first = next(iter(self.query("#ask, OptionList")), None) or self.query_one("#task")
        first.focus()

    @work
    async def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        asked = await self.step(control.ask, self.room.desk, self.session.id, event.option_index + 1)
        if asked and self.is_attached:
            self._show()

    @work
    async def on_input_submitted(self, event: Input.Submitted) -> None:
        said = event.value.strip()
        told: list[str] = []
        asked = said and await self.step(lambda: told.append(actions.ask(self.room.desk, self.session, said)))
        if asked and self.is_attached:
            event.input.value = ""
            self._told.append(f"{said}\n{texts.unwrapped(told[0])}")
            self._show()

    def action_turn(self, way: int) -> None:
        """Scroll the task by a page, wherever the cursor is."""
        task = self.query_one("#task", Pane)
        task.scroll_page_down(animate=False) if way > 0 else task.scroll_page_up(animate=False)

    @work
    async def action_begin(self) -> None:
        """Start the clock."""
        await self.step(control.advance, self.room.desk, self._seen.id, seen=self._seen)

    def _show(self) -> None:
        for pane in self.query("#answers").results(Pane):
            pane.show("\n\n".join(self._told) or texts.ASK, end=True)
        if not self.session.listed or not words.may_ask(self.session):
            return
        listed = self.query_one(OptionList)
        at = listed.highlighted or 0
        listed.clear_options()
        listed.add_options(
            Option(f"{n}. {ask}" + (f"\n   → {answer}" if answer else ""))
            for n, (ask, answer) in enumerate(asked(self.session), 1)
        )
        listed.highlighted = at
