"""The room's text and the file on the disk, which another editor may write at any time.

`base` is the last text that both had. The room never overwrites a file with unknown content; it raises FileChanged
instead. Everything here is quick and does not use the screen.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attn_kata import workspace
from attn_kata.errors import UsageError, why
from attn_kata.interview.attempts import look, temporary

_MODE = 0o644


class FileChanged(Exception):
    """The file has content that the room has not seen."""

    def __init__(self, theirs: bytes) -> None:
        super().__init__("the file changed on the disk")
        self.theirs = theirs


@dataclass(frozen=True, kw_only=True)
class State:
    """How the room's text and the file relate.

    same: equal. mine: only the room's changed. theirs: only the file did. conflict: both did. gone: no file to read, or an
    emptied one: another editor empties a file before it writes it, and nobody means to give up what was written.
    """

    kind: Literal["same", "mine", "theirs", "conflict", "gone"]
    theirs: bytes = b""
    why: str = ""


class Draft:
    """One attempt."""

    def __init__(self, path: Path, base: bytes) -> None:
        self.path, self.base = path, base

    def compare(self, mine: bytes) -> State:
        """Compare with the disk. If both are equal, that text is the new base."""
        found = look(self.path)
        if found.source is None:
            return State(kind="gone", why=found.why)
        if found.source == mine:
            self.base = mine
            return State(kind="same")
        if found.source == self.base:
            return State(kind="mine")
        if not found.source.strip():
            return State(kind="gone", why=f"'{workspace.shown(self.path)}' is empty")
        return State(kind="theirs" if mine == self.base else "conflict", theirs=found.source)

    def write(self, mine: bytes) -> None:
        """Write `mine` to the disk, whole or not at all. Raises FileChanged, UsageError.

        The replaced file is read once more afterwards. If it changed at the last moment, that text is kept in a copy.
        """
        found = look(self.path)
        if found.source is None and self.path.exists():
            raise UsageError(f"{found.why}, so your text cannot be saved there.")
        if found.source is not None and found.source.strip() and found.source not in (self.base, mine):
            raise FileChanged(found.source)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(mine, before=found.source)
        except OSError as problem:
            raise UsageError(
                f"'{workspace.shown(self.path)}' cannot be written: {why(problem)}. Your text is only in the room."
            ) from problem
        self.base = mine

    def overwrite(self, mine: bytes, theirs: bytes) -> None:
        """Replace `theirs`, which the user has seen, by `mine`. Raises FileChanged, UsageError."""
        self.base = theirs
        self.write(mine)

    def aside(self, source: bytes, name: str) -> Path:
        """Write `source` beside the file, as `sdpa.<name>-1.py` or the next number that is free. Raises UsageError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for number in range(1, 10_000):
                path = self.path.with_name(f"{self.path.stem}.{name}-{number}{self.path.suffix}")
                try:
                    file = path.open("xb")
                except FileExistsError:
                    if path.is_file() and path.read_bytes() == source:
                        return path
                    continue
                try:
                    with file:
                        file.write(source)
                except OSError:
                    path.unlink(missing_ok=True)  # remove an incomplete copy
                    raise
                return path
        except OSError as problem:
            raise UsageError(f"'{workspace.shown(self.path.parent)}' cannot be written: {why(problem)}.") from problem
        raise UsageError(f"'{workspace.shown(self.path.parent)}' has too many copies.", next_step="Remove some")

    def in_temporary_folder(self, source: bytes) -> Path:
        """Write `source` into the temporary folder, where `attempts.strays` finds it. Raises OSError.

        It gets the name that is looked for only when it is whole: half a text must not be offered as the text.
        """
        prefix = f".{temporary(self.path)}"
        handle, unfinished = tempfile.mkstemp(prefix=prefix, suffix=".py.new")
        whole = Path(unfinished).with_name(Path(unfinished).name.removeprefix(".").removesuffix(".new"))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(source)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, whole)
        except OSError:
            Path(unfinished).unlink(missing_ok=True)
            raise
        return whole

    def _replace(self, mine: bytes, *, before: bytes | None) -> None:
        target = Path(os.path.realpath(self.path))  # a link stays a link
        mode = target.stat().st_mode & 0o777 if before is not None else _MODE
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent)
        old = Path(f"{name}.old")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(mine)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, mode)
            if before is not None:
                with contextlib.suppress(OSError):  # a file system without links
                    os.link(target, old)
            os.replace(name, target)
            if old.exists() and (last := old.read_bytes()) != before:
                self.aside(last, "file")
        finally:
            for path in (Path(name), old):
                path.unlink(missing_ok=True)
