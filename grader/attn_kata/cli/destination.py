"""Where a report goes: stdout, or the file of `--output`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from attn_kata.cli.output import color, emit, warn, width
from attn_kata.errors import UsageError, why
from attn_kata.report.formats import renderer
from attn_kata.workspace import printable

if TYPE_CHECKING:
    from attn_kata.report.model import Report


class Destination:
    """A format, and stdout or a file. Raises UsageError at once when the file cannot be written.

    With `advice`, the terminal report ends in the next command to type, with `options` added to it. On stdout it is the short
    one, unless `full`.
    """

    def __init__(
        self, path: Path | None, form: str, *, attempt: Path, advice: bool, options: str, full: bool = True
    ) -> None:
        self._path = path
        self._form = "folded" if form == "terminal" and path is None and not full else form
        self._advice, self.options = advice, options
        if path is not None:
            _check(path, attempt)

    def prepare(self) -> None:
        """Import the format's module early, while torch loads in the engine."""
        renderer(self._form)

    def write(self, report: Report, source: bytes) -> None:
        """Print the report, or write it into the file; then stdout stays empty and stderr has the verdict."""
        render = renderer(self._form)
        of_terminal = self._form in ("terminal", "folded")
        following = {"advice": self._advice, "options": self.options} if of_terminal else {}
        if self._path is None:
            emit(render(report, width=width(), color=color(), source=source, **following))
            return
        try:
            text = render(report, source=source, **following)
            self._path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        except OSError as problem:
            raise UsageError(f"'{_shown(self._path)}' cannot be written: {why(problem)}.") from problem
        warn(f"{report.kata}: {report.outcome}. The report is in '{_shown(self._path)}'.")


def _check(path: Path, attempt: Path) -> None:
    following = "Name another file: --output PATH"
    try:
        if path.is_dir():
            raise UsageError(f"'{_shown(path)}' is a folder.", next_step=following)
        if path.exists() and attempt.exists() and path.samefile(attempt):
            raise UsageError(f"'{_shown(path)}' is your attempt; the report would replace it.", next_step=following)
        if not path.parent.is_dir():
            raise UsageError(
                f"There is no folder '{_shown(path.parent)}' to write the report into.", next_step=following
            )
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"'{_shown(path)}' cannot be written: permission denied.", next_step=following)
    except (OSError, ValueError) as problem:
        reason = why(problem) if isinstance(problem, OSError) else str(problem)
        raise UsageError(f"'{_shown(path)}' cannot be written: {reason}.", next_step=following) from problem


def _shown(path: Path) -> str:
    return printable(str(path))
