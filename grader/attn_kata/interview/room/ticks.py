"""Check boxes that work without colour: Textual's own always show an X."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import Checkbox, SelectionList

_ON, _OFF = "X", " "


class Tick(Checkbox):
    """One box."""

    BUTTON_INNER = _OFF

    def watch_value(self) -> None:
        self.BUTTON_INNER = _ON if self.value else _OFF
        super().watch_value()
        self.refresh()


class Ticks(SelectionList[int]):
    """A list with one box per line."""

    def render_line(self, y: int) -> Strip:
        made = super().render_line(y)
        segments = list(made)
        if len(segments) > 1 and segments[1].text == _ON and segments[1].style is not None:
            place = segments[1].style.meta.get("option")
            if place is not None and self.get_option_at_index(place).value not in self.selected:
                segments[1] = Segment(_OFF, segments[1].style)
        return Strip(segments)
