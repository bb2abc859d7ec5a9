"""Detects saves of one file. Editors save in place, by renaming a new file over the old one, in two steps, or twice."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attn_kata import local_imports
from attn_kata.errors import UsageError
from attn_kata.sources import Source

STEP_MS = 5  # without a change before a save counts as finished
GROUP_MS = 200  # at most, for an editor that writes in many steps
LOOK_MS = 1_000  # how often to read the file on a file system without change events
EMPTY_SECONDS = 0.25  # an empty file is usually about to be written


@dataclass(frozen=True, kw_only=True)
class Saved:
    """The file now has this content."""

    source: Source


@dataclass(frozen=True, kw_only=True)
class Missing:
    """The file cannot be read now; `why` is a sentence."""

    why: str


Seen = Saved | Missing


class Watcher:
    """Calls `seen` with the file's content, from a separate thread: once at the start, then after every change.

    Raises UsageError when watchfiles is not installed.
    """

    def __init__(self, path: Path, seen: Callable[[Seen], None]) -> None:
        try:
            import watchfiles
        except ImportError:
            raise UsageError(
                "'attn-kata watch' needs the package watchfiles.", next_step="python -m pip install watchfiles"
            ) from None
        self._watch = watchfiles.watch
        self._path, self._tell = path, seen
        self._last: Seen | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._look()
            # The folder may disappear and come back, like the file.
            with contextlib.suppress(OSError, RuntimeError):
                for _ in self._watch(
                    *self._folders(),
                    watch_filter=None,
                    step=STEP_MS,
                    debounce=GROUP_MS,
                    rust_timeout=LOOK_MS,
                    yield_on_timeout=True,
                    stop_event=self._stop,
                    recursive=False,
                    raise_interrupt=False,
                ):
                    self._look()
                    if not self._path.parent.is_dir():
                        break
            self._stop.wait(LOOK_MS / 1000)

    def _folders(self) -> set[Path]:
        """The file's folder, and the folder of its link target."""
        return {self._path.parent, self._path.resolve().parent}

    def _look(self) -> None:
        seen = look(self._path)
        if isinstance(seen, Saved) and not seen.source.code.strip():
            deadline = time.monotonic() + EMPTY_SECONDS
            while isinstance(seen, Saved) and not seen.source.code.strip() and time.monotonic() < deadline:
                self._stop.wait(STEP_MS / 1000)
                seen = look(self._path)
        if isinstance(seen, Missing) and self._last is not None and not isinstance(self._last, Missing):
            self._stop.wait(STEP_MS / 1000)  # between an unlink and a rename
            seen = look(self._path)
        if seen != self._last and not self._stop.is_set():
            self._last = seen
            self._tell(seen)


def look(path: Path) -> Seen:
    """The file's content now."""
    try:
        return Saved(source=local_imports.read(path))
    except UsageError as problem:
        return Missing(why=problem.what)
