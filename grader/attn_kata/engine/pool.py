"""A pool of warm engines for many gradings of one kata. An engine that dies or grows is replaced.

`EnginePool.grade` may be called from as many threads as the pool has engines. It is what a class is graded with, on this
machine and on every machine of a cluster.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from attn_kata.engine.client import EngineFault
from attn_kata.engine.persistent import PersistentEngine
from attn_kata.report.model import Report

WARM = 4  # gradings after which an engine has everything that it will keep
GROWTH = 1.25  # of the memory that it had then: from there on it is replaced
SLACK = 64 << 20  # bytes
MOST_GRADINGS = 1_000  # of one engine, on systems that do not tell how large it is


def processors_here() -> list[int]:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@dataclass(kw_only=True)
class _Place:
    """A place in the pool: its engine, which is started when it is first needed, and what is known about it."""

    processor: int | None
    engine: PersistentEngine | None = None
    graded: int = 0
    warm_bytes: int | None = None
    used_at: float = field(default_factory=time.monotonic)


class EnginePool:
    """`size` engines. They start when they are first needed, and end with `close`.

    With one engine for each processor of this process, every engine stays on its own processor.
    """

    def __init__(self, size: int, *, tier: int | None = None, bound: bool = True) -> None:
        """Without `bound`, no engine is bound to a processor: other processes may have engines on this machine."""
        available = processors_here()
        bound = bound and size == len(available)
        self._tier = tier
        self._places = [_Place(processor=available[number] if bound else None) for number in range(size)]
        self._free: queue.LifoQueue[_Place] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._closed = False
        for place in reversed(self._places):
            self._free.put(place)

    def __enter__(self) -> EnginePool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def grade(self, slug: str, source: bytes, **options: Any) -> Report:
        """Like `Engine.grade`, on the next free engine. If it dies, a new one grades again, once. Raises EngineFault."""
        place = self._free.get()
        try:
            try:
                report = self._started(place).grade(slug, source, **options)
            except EngineFault:
                place.graded, place.warm_bytes = 0, None
                report = self._started(place).grade(slug, source, **options)
            self._replace_if_grown(place)
            return report
        finally:
            place.used_at = time.monotonic()
            self._free.put(place)

    def close(self) -> None:
        """End all engines, also those that are grading. No other is started after this."""
        with self._lock:
            self._closed = True
            engines = [place.engine for place in self._places if place.engine is not None]
        for engine in engines:
            engine.close()

    def end_idle(self, seconds: float) -> None:
        """End every engine that has not been used for this long. It starts again when it is needed."""
        kept = []
        while True:
            try:
                place = self._free.get_nowait()
            except queue.Empty:
                break
            kept.append(place)
            if place.engine is not None and time.monotonic() - place.used_at >= seconds:
                place.engine.restart()
                place.graded, place.warm_bytes = 0, None
        for place in reversed(kept):
            self._free.put(place)

    def _started(self, place: _Place) -> PersistentEngine:
        with self._lock:
            if self._closed:
                raise EngineFault("the engine was ended")
            if place.engine is None:
                place.engine = PersistentEngine(tier=self._tier, processor=place.processor)
            return place.engine

    def _replace_if_grown(self, place: _Place) -> None:
        assert place.engine is not None
        place.graded += 1
        now = place.engine.memory()
        if now is None:
            grown = place.graded >= MOST_GRADINGS
        elif place.graded <= WARM or place.warm_bytes is None:
            place.warm_bytes, grown = max(now, place.warm_bytes or 0), False
        else:
            grown = now > GROWTH * place.warm_bytes + SLACK
        if grown:
            place.engine.restart()
            place.graded, place.warm_bytes = 0, None
