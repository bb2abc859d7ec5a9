"""The follow-up questions, one at a time: a number, a choice, or a free answer with points to tick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Input, OptionList, TextArea
from textual.widgets.option_list import Option

from attn_kata.interview import control
from attn_kata.interview.room.screens import RoomScreen, Words
from attn_kata.interview.room.ticks import Ticks
from attn_kata.interview.session import Session
from attn_kata.report.plain import plain

_HOW = {
    "numeric": "Type a number: 1536, 1_536, 1.5e3, 12 MiB, 33 %. Enter answers.",
    "choice": "Choose with the arrows, or type its number; Enter answers.",
    "review": "Type a line and what is wrong there, one mistake in each line. PgDn, PgUp: the code. Ctrl+G answers.",
    "free": "Answer in your own words. Ctrl+G answers and shows the points of a model answer.",
    "points": "A model answer has these points. Tick with Space those that yours had; Ctrl+G goes on.",
}


def open_ones(session: Session) -> list[int]:
    """The questions of this round that have no answer, or whose points are not ticked yet."""
    return [
        place
        for place in session.places
        if place not in session.answers
        or (session.follow_ups[place - 1]["kind"] == "free" and place not in session.ticks)
    ]


class QuestionsScreen(RoomScreen):
    """One question at a time. A skipped question can be answered later, until the review."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g", "answer", "Answer", priority=True),
        Binding("ctrl+n", "leave_out", "Skip it", priority=True),
        Binding("pagedown", "turn(1)", "Read on", priority=True, key_display="PgDn"),
        Binding("pageup", "turn(-1)", "Read back", priority=True, show=False),
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._seen = session
        self._left_out: set[int] = set()
        self._place = 0

    def body(self) -> ComposeResult:
        yield VerticalScroll(Words(id="asked"), id="question", can_focus=False)
        yield Vertical(id="answer")

    async def on_mount(self) -> None:
        await self._next()

    def on_key(self, event: events.Key) -> None:
        """The number of an option goes to it: who types 3 and Enter does not answer 1."""
        for options in self.query("#answer OptionList").results(OptionList):
            if event.character in [str(number) for number in range(1, min(9, options.option_count) + 1)]:
                options.highlighted = int(event.character or 1) - 1

    def on_input_submitted(self) -> None:
        self.action_answer()

    def on_option_list_option_selected(self) -> None:
        self.action_answer()

    def action_turn(self, way: int) -> None:
        """Scroll the question by a page."""
        asked = self.query_one("#question", VerticalScroll)
        asked.scroll_page_down(animate=False) if way > 0 else asked.scroll_page_up(animate=False)

    @work
    async def action_answer(self) -> None:
        """Keep the answer, or the points; then go on."""
        if not self._place:
            return
        desk, number = self.room.desk, self.session.id
        points = self.query(Ticks)
        if not points and not self._typed().strip():
            self.room.notify("The answer is empty. Write one, or skip the question: Ctrl+N", timeout=5)
            return
        if points:
            kept = await self.step(control.tick_points, desk, number, self._place, tuple(sorted(points.first().ticked)))
        else:
            kept = await self.step(control.answer, desk, number, self._place, self._typed())
        if kept and self.is_attached:
            await self._next()

    @work
    async def action_leave_out(self) -> None:
        """Go on without an answer."""
        if self._stepping:
            return
        self._left_out.add(self._place)
        await self._next()

    async def _next(self) -> None:
        places = [place for place in open_ones(self.session) if place not in self._left_out]
        if not places:
            self._place = 0
            await self.step(control.advance, self.room.desk, self._seen.id, seen=self._seen)
            return
        self._place = places[0]
        self.set_class(self.session.follow_ups[self._place - 1]["kind"] == "review", "-review")
        self.room.keys.shut()  # the rest of a burst was meant for the question before
        self.room.clear_notifications()  # errors about the last answer
        question = self.session.follow_ups[self._place - 1]
        ticking = self._place in self.session.answers
        kind = "points" if ticking else question["kind"]
        unit = f" (in {question['unit']})" if question.get("unit") else ""
        yours = f"\n\nYours: {plain(self.session.answers[self._place]['text'])}" if ticking else ""
        own = self.session.places
        self.query_one("#asked", Words).update(
            f"Question {own.index(self._place) + 1} of {len(own)}\n\n"
            f"{question['ask']}{unit}{yours}\n\n{_HOW[kind]}\n\n{_to_read(question)}".rstrip()
        )
        holder = self.query_one("#answer", Vertical)
        await holder.remove_children()
        field = _field(kind, question)
        await holder.mount(field)
        field.focus()

    def _typed(self) -> str:
        for options in self.query("#options").results(OptionList):
            return str((options.highlighted or 0) + 1)
        for words in self.query("#free").results(TextArea):
            return words.text
        return self.query_one("#number", Input).value


def _to_read(question: Mapping[str, Any]) -> str:
    """A colleague's code, and what it has to do."""
    return f"{question['code']}\n\nWHAT IT HAS TO DO\n\n{question['contract']}" if "code" in question else ""


def _field(kind: str, question: Mapping[str, Any]) -> Input | OptionList | TextArea:
    if kind == "numeric":
        return Input(placeholder="a number", id="number", classes="answer")
    if kind == "choice":
        options = [Option(f"{n}) {says}") for n, says in enumerate(question["options"], 1)]
        return OptionList(*options, id="options", markup=False)
    if kind in ("free", "review"):
        return TextArea(id="free", classes="answer", soft_wrap=True)
    return Ticks(question["points"], id="points")
