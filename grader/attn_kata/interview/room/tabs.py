"""The line above the panes of a narrow terminal: the visible pane, and the state of the last run."""

from __future__ import annotations

from attn_kata.interview.room.screens import Words

PANES = ("task", "editor", "output")


class Tabs(Words):
    """`F2 task  [F3 editor]  F4 output: running …`: a narrow terminal has no borders with titles."""

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self.front = "editor"
        self._run = ""

    @property
    def next(self) -> str:
        """The pane after the one in front."""
        return PANES[(PANES.index(self.front) + 1) % len(PANES)]

    def show(self, *, front: str | None = None, run: str | None = None) -> None:
        """Show another pane in front, or another state of the run."""
        self.front = self.front if front is None else front
        self._run = self._run if run is None else run
        self.update("  ".join(self._tab(number, pane) for number, pane in enumerate(PANES, 2)))

    def _tab(self, number: int, pane: str) -> str:
        title = f"F{number} {pane}" + (f": {self._run}" if pane == "output" and self._run else "")
        return f"[{title}]" if pane == self.front else f" {title} "
