"""Before a session: choose a plan or kata, the minutes, and coached or not."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from attn_kata import catalog
from attn_kata.interview import actions, plans, preparing
from attn_kata.interview.plans import Plan
from attn_kata.interview.room.screens import RoomScreen, Words
from attn_kata.interview.room.ticks import Tick

SMALL = 64  # columns that the options need in one line


class ChoosingScreen(RoomScreen):
    """A list of plans and katas; Enter goes to the briefing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+g", "go_on", "To the briefing", priority=True)]

    def body(self) -> ComposeResult:
        yield Words(
            "A mock interview: a task, a clock, hidden tests, questions, a scorecard.\n"
            "Choose with the arrows; Enter shows the task. No clock runs yet. Tab: options.",
            id="about",
        )
        named, every = plans.every(), catalog.katas()
        name_width = max(len(plan.name) for plan in named)
        kata_width = max(len(kata.slug) for kata in every)
        options = [
            Option(
                f"{plan.name:<{name_width}} {plans.minutes_text(plan.minutes):>3} min  {plan.shown}",
                id=f"plan {plan.name}",
            )
            for plan in named
        ]
        katas = [
            Option(f"{kata.slug:<{kata_width}} {kata.minutes:>3} min  {kata.title}", id=f"kata {kata.slug}")
            for kata in every
        ]
        listed = OptionList(*options, _heading("or one kata"), *katas, id="plans", markup=False)
        listed.border_title = "Plans"
        yield listed
        yield Words(id="plan")
        with Container(id="details"):
            yield Input(placeholder="other minutes", id="minutes", compact=True)
            yield Tick("list of questions", id="listed", compact=True)
            yield Tick("coached, with findings", id="coached", compact=True)

    def on_mount(self) -> None:
        listed = self.query_one(OptionList)
        listed.focus()
        listed.highlighted = listed.get_option_index(f"plan {plans.DEFAULT_PLAN}")

    def on_resize(self, event: events.Resize) -> None:
        """A small screen has the options below each other."""
        self.set_class(event.size.width < SMALL, "-small")

    @on(OptionList.OptionHighlighted, "#plans")
    def say_what_it_is(self, event: OptionList.OptionHighlighted) -> None:
        """Say what the plan is, below the list."""
        self.query_one("#plan", Words).update(_about(str(event.option_id)))

    def on_option_list_option_selected(self) -> None:
        self.action_go_on()

    def on_input_submitted(self) -> None:
        self.action_go_on()

    @work
    async def action_go_on(self) -> None:
        """Start the chosen session, with its briefing."""
        listed = self.query_one(OptionList)
        chosen = listed.highlighted_option
        if chosen is None or chosen.id is None:
            return
        minutes, coached = self.query_one(Input).value.strip(), self.query_one("#coached", Tick).value
        listed_questions = self.query_one("#listed", Tick).value

        room, plan = self.room, _plan(str(chosen.id))

        def begin() -> None:
            asked = plans.with_minutes(plan, plans.minutes_from(minutes)) if minutes else plan
            actions.start(
                room.desk,
                asked,
                coached=coached,
                folder=None,
                history=room.history,
                engines=room.engines,
                listed=listed_questions,
            )

        if preparing.needs_engine(plan) and not self._stepping:
            room.notify("Making the code with mistakes …", timeout=20)
        if await self.step(begin):
            self._stepping = True  # until the next screen is there
            await self.room.come_in()


def _heading(says: str) -> Option:
    return Option(f"── {says} ──", disabled=True)


def _about(chosen: str) -> str:
    plan = _plan(chosen)
    return f"{plan.title}: {plan.about}" if chosen.startswith("plan ") else f"{plan.title}, then questions"


def _plan(chosen: str) -> Plan:
    kind, _, name = chosen.partition(" ")
    return plans.of_name(name) if kind == "plan" else plans.of_katas((name,))
