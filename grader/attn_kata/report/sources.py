"""Source files for a terminal: side by side if they fit, else one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from attn_kata.report.console import TextConsole
from attn_kata.report.plain import plain

NARROWEST = 2 * 84  # two columns of code and the gap


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file's bytes and its title."""

    title: str
    code: bytes


def side_by_side(sources: list[Source], *, width: int, color: bool) -> str:
    """The sources as text that is safe to print."""
    console = TextConsole(width=width, color=color)
    if len(sources) > 1 and width >= NARROWEST:
        table = Table.grid(padding=(0, 2), expand=True)
        for _ in sources:
            table.add_column(ratio=1)
        table.add_row(*(Text(plain(source.title), style="bold") for source in sources))
        table.add_row()
        table.add_row(*(_code(source, color) for source in sources))
        console.print(table)
    else:
        # A line of code is never wrapped here, so that it stays valid Python to copy. The terminal wraps it.
        console.width = max(width, *(len(line) + 1 for source in sources for line in _text(source).splitlines()))
        for number, source in enumerate(sources):
            if number:
                console.print()
            console.print(Text(plain(source.title), style="bold"))
            console.print()
            console.print(_code(source, color))
    return "\n".join(console.lines()) + "\n"


def _text(source: Source) -> str:
    return plain(source.code.decode("utf-8", "replace")).rstrip().expandtabs()


def _code(source: Source, color: bool) -> Syntax | Text:
    code = _text(source)
    if not color:
        return Text(code, overflow="fold")
    return Syntax(code, "python", theme="ansi_dark", background_color="default", word_wrap=True)
