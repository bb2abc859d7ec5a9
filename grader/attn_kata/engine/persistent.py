"""An engine that is kept between gradings. It is restarted after a fault, and when the package's files have changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from attn_kata import resources
from attn_kata.engine import memory
from attn_kata.engine.client import Engine, EngineFault, GradingCancelled, TooWeak
from attn_kata.grading import processors
from attn_kata.report.model import Report

LOOK_SECONDS = 1.0  # between two looks at all files: a class is graded faster than anybody installs a package
_SUFFIXES = (".py", ".toml")


class PersistentEngine:
    """One engine after another, never two. `cancel` and `close` may be called from another thread than `grade`."""

    def __init__(self, *, tier: int | None = None, processor: int | None = None) -> None:
        """With `processor`, the engine and its children stay on that processor."""
        self._tier, self._processor = tier, processor
        self._lock = threading.Lock()
        self._closed = False
        self._states, self._looked = _file_states(), time.monotonic()
        self._engine: Engine | None = self._start()  # torch loads while the caller continues

    def __enter__(self) -> PersistentEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def grade(self, slug: str, source: bytes, **options: Any) -> Report:
        """Like `Engine.grade`. After a fault or an interrupt the next grading gets a new engine."""
        engine = self._current()
        try:
            return engine.grade(slug, source, **options)
        except (GradingCancelled, TooWeak):
            raise
        except BaseException:
            # After an interrupt, the answer that still comes would be taken for that of the next grading. But the next grading
            # may have begun already, with an engine of its own.
            self._drop(engine)
            raise

    def cancel(self) -> None:
        """Like `Engine.cancel`."""
        with self._lock:
            if self._engine is not None:
                self._engine.cancel()

    def memory(self) -> int | None:
        """The bytes of memory of the largest process of the engine, or None if the system does not tell."""
        with self._lock:
            return None if self._engine is None else memory.of_process(self._engine.pid)

    def restart(self) -> None:
        """End the engine that runs, and what it grades. The next grading gets a new one."""
        self._drop()

    def close(self) -> None:
        """End the engine. No other is started after this."""
        with self._lock:
            self._closed = True
        self._drop()

    def _current(self) -> Engine:
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            states, self._looked = _file_states(), time.monotonic()
            if states != self._states:
                self._drop()
                self._states = states
        with self._lock:
            if self._closed:
                raise EngineFault("the engine was ended")
            if self._engine is None:
                self._engine = self._start()
            return self._engine

    def _start(self) -> Engine:
        engine = Engine(tier=self._tier)
        processors.stay_on(self._processor, engine.pid)
        return engine

    def _drop(self, failed: Engine | None = None) -> None:
        """End the engine; with `failed`, only if it is still that one."""
        with self._lock:
            if failed is not None and self._engine is not failed:
                return
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


def _file_states() -> frozenset[tuple[str, int, int]]:
    """Every file of the package and its katas that an engine may have read, with its time of change and size."""
    folders = (Path(__file__).parents[1], resources.katas_folder(), resources.solutions_folder())
    return frozenset(entry for folder in folders for entry in _files(str(folder)))


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(_SUFFIXES):
                    state = entry.stat()
                    yield entry.path, state.st_mtime_ns, state.st_size
                elif entry.is_dir() and entry.name not in (
                    "__pycache__",
                    "right",
                    "wrong",
                ):  # no engine reads specimens
                    yield from _files(entry.path)
    except OSError:  # the folder is being replaced at this moment
        return
