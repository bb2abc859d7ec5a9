"""The room's editor: syntax colours, automatic indentation, and file bytes that stay unchanged until you edit."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea
from textual.widgets.text_area import Selection

from attn_kata.interview.room import highlight

INDENT = 4
_GAP = "raise NotImplementedError"
_BEYOND = 3_000  # lines: longer files have no colours
_PICTURES = {code: 0x2400 + code for code in range(32) if code != 9} | {127: 0x2421}  # ␛ for what moves a cursor


class Editor(TextArea):
    """One attempt's text. `source` are the bytes to write to the disk."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("shift+tab", "dedent", "Dedent", show=False),
        Binding("ctrl+home", "edge(False)", "To the start", show=False),
        Binding("ctrl+end", "edge(True)", "To the end", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(
            tab_behavior="indent", soft_wrap=False, show_line_numbers=True, max_checkpoints=500, id="editor"
        )
        self.indent_width = INDENT
        self.border_title = "Your code"
        self.odd = ""  # why the text cannot be edited here
        self._loaded = b""
        self._shown = ""
        self._lexed: list[str] | None = None
        self._spans: list[tuple[highlight.Span, ...]] = []

    @property
    def source(self) -> bytes:
        """The text as bytes: exactly what was loaded, until it is edited."""
        text = self.text
        return self._loaded if self.odd or text == self._shown else text.encode("utf-8", "replace")

    def load(self, source: bytes) -> None:
        """Show a file's bytes and keep the cursor. A text that cannot be written back unchanged is read-only."""
        try:
            text, self.odd = source.decode("utf-8"), ""
        except UnicodeDecodeError:
            text, self.odd = source.decode("utf-8", "replace"), "is not UTF-8"
        at, scrolled = self.cursor_location, self.scroll_offset
        self.load_text(text)
        if not self.odd and self.text != text:
            self.odd = "has mixed line ends or unusual separators"
        self._loaded, self._shown = source, self.text
        row = min(at[0], self.document.line_count - 1)
        self.move_cursor((row, min(at[1], len(self.document.get_line(row)))))
        self.scroll_to(*scrolled, animate=False)

    def get_line(self, line_index: int) -> Text:
        """One line, in colours."""
        line = self.document.get_line(line_index)
        made = Text(line.translate(_PICTURES), end="", no_wrap=True)
        lines = self.document.lines
        if len(lines) <= _BEYOND:
            if lines != self._lexed:
                self._lexed, self._spans = list(lines), highlight.spans(lines)
            for start, end, kind in self._spans[line_index]:
                made.stylize(highlight.STYLES[kind], start, end)
        return made

    async def _on_key(self, event: events.Key) -> None:
        if self.read_only:
            return
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            start, end = sorted(self.selection)
            before = self.document.get_line(start[0])[: start[1]]
            indent = before[: len(before) - len(before.lstrip())]
            code = before.split("#")[0].rstrip()
            if code.endswith((":", "(", "[", "{")):
                indent += " " * INDENT
            elif code.lstrip().split(" ")[0] in ("return", "raise", "pass", "break", "continue"):
                indent = indent[:-INDENT]
            self._put("\n" + indent, start, end)
        elif event.key == "backspace" and self.selection.is_empty:
            row, column = self.cursor_location
            before = self.document.get_line(row)[:column]
            if before and not before.strip(" "):
                event.stop()
                event.prevent_default()
                self._put("", (row, (column - 1) // INDENT * INDENT), (row, column))

    def action_dedent(self) -> None:
        """One step less of indentation in every selected line."""
        if self.read_only:
            return
        (first, _), (last, _) = sorted(self.selection)
        for row in range(first, last + 1):
            line = self.document.get_line(row)
            spaces = min(INDENT, len(line) - len(line.lstrip(" ")))
            if spaces:
                self.delete((row, 0), (row, spaces))

    def action_edge(self, end: bool) -> None:
        """Move to the first character, or after the last."""
        self.move_cursor(self.document.end if end else (0, 0))

    def to_first_gap(self) -> None:
        """Select the first NotImplementedError, so that typing replaces it; without one, go to the first line of code."""
        for row, line in enumerate(self.document.lines):
            code = line.lstrip()
            if code.startswith(_GAP):
                self.selection = Selection((row, len(line)), (row, len(line) - len(code)))  # its end is the cursor
                self.call_after_refresh(self.scroll_cursor_visible, center=True)
                return
        first = (row for row, line in enumerate(self.document.lines) if line.strip() and not line.startswith("#"))
        self.move_cursor((next(first, 0), 0))
        self.call_after_refresh(self.scroll_cursor_visible, center=True)

    def on_resize(self) -> None:
        """Scroll back after the terminal became wider."""
        self.scroll_to(0, animate=False)
        self.scroll_cursor_visible()

    def _put(self, text: str, start: tuple[int, int], end: tuple[int, int]) -> None:
        self.replace(text, start, end, maintain_selection_offset=False)
        self.scroll_cursor_visible()
