"""A console that keeps what is printed, so that it can be wrapped, measured and shown later."""

from __future__ import annotations

import io

from rich.console import Console


class TextConsole(Console):
    """A console of `width` columns, in colour with `color`. It asks no terminal, and takes no mark-up from what it prints."""

    def __init__(self, *, width: int, color: bool = False) -> None:
        self._kept = io.StringIO()
        super().__init__(
            file=self._kept,
            width=width,
            force_terminal=color,
            color_system="standard" if color else None,  # "auto" would ask TERM, which FORCE_COLOR overrides
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            force_jupyter=False,  # in a notebook rich would show its text at once
        )

    def lines(self) -> list[str]:
        """What was printed, line by line, without blanks at the end of a line."""
        return [line.rstrip() for line in self._kept.getvalue().split("\n")[:-1]]  # every print ends a line
