"""A page of text for a terminal: paragraphs, hanging indents and listings of code, wrapped to the width."""

from __future__ import annotations

from rich.padding import Padding
from rich.text import Text

from attn_kata.report.console import TextConsole
from attn_kata.report.listing import Line

BODY = 7  # columns before the text of a finding


class Page:
    """Writes paragraphs of plain text, indented, and blank lines between sections."""

    def __init__(self, *, width: int, color: bool) -> None:
        self.width = width
        self.console = TextConsole(width=width, color=color)

    def lines(self) -> list[str]:
        """What was written."""
        return self.console.lines()

    def blank(self) -> None:
        """An empty line."""
        self.console.print()

    def section(self, title: str = "") -> None:
        """A title between empty lines."""
        self.blank()
        if title:
            self.console.print(Text(title, style="bold"))
            self.blank()

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One paragraph."""
        text = Text.assemble(*parts, overflow="fold")
        self.console.print(Padding(text, (0, 0, 0, indent), expand=False))

    def hanging(self, head: tuple[str, str], text: str | Text, *, indent: int = 0) -> None:
        """`head`, then `text` to its right, wrapped in its own column of at least `indent`."""
        rest = text if isinstance(text, Text) else Text(text)
        rest.overflow = "fold"
        indent = max(indent or BODY, len(head[0]) + 2)
        wrapped = rest.wrap(self.console, max(20, self.width - indent))
        for number, line in enumerate(wrapped):
            line.rstrip()
            start = Text(head[0].ljust(indent), style=head[1]) if number == 0 else Text(" " * indent)
            self.as_is(Text.assemble(start, line))

    def code(self, every: list[Line], *, indent: int) -> None:
        """Lines of source with their numbers, the marked ones with `>`; the indentation that they share is left out."""
        texts = ["".join(text for _, text in line.parts) for line in every]
        shared = min((len(text) - len(text.lstrip()) for text in texts if text.strip()), default=0)
        digits = max((len(str(line.shown)) for line in every if line.shown), default=0)
        for line, text in zip(every, texts, strict=True):
            mark = ">" if line.marked else " "
            head = f"{' ' * indent}{mark} {line.shown or '':>{digits}}"
            self.hanging((head, "bold" if line.marked else "dim"), text[shared:].rstrip() or " ", indent=indent)

    def drawing(self, lines: list[str], *, indent: int) -> None:
        """Lines that are not wrapped."""
        for line in lines:
            self.as_is(Text(" " * indent + line))

    def as_is(self, text: Text) -> None:
        """One line that is not wrapped."""
        self.console.print(text, no_wrap=True, crop=False, overflow="ignore")
