"""Check boxes that work without colour: Textual's own always show an X. Long lines wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Checkbox, OptionList
from textual.widgets.option_list import Option

_ON, _OFF = "X", " "


class Tick(Checkbox):
    """One box."""

    BUTTON_INNER = _OFF

    def watch_value(self) -> None:
        self.BUTTON_INNER = _ON if self.value else _OFF
        super().watch_value()
        self.refresh()


class Ticks(OptionList):
    """A list with one box per line of text. Space or Enter ticks; `ticked` has the numbers, from 1."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "select", "Tick", show=False)]

    def __init__(self, lines: Sequence[str], *, id: str) -> None:
        self._says = lines
        self.ticked: set[int] = set()
        super().__init__(*(Option(self._line(number)) for number in range(1, len(lines) + 1)), id=id, markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Tick it, or take the tick away."""
        event.stop()
        number = event.option_index + 1
        self.ticked ^= {number}
        self.replace_option_prompt_at_index(event.option_index, self._line(number))

    def _line(self, number: int) -> str:
        return f"[{_ON if number in self.ticked else _OFF}] {number}. {self._says[number - 1]}"
