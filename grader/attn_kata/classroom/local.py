"""Grades on this machine: a pool of engines, with one thread for each."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from attn_kata.classroom import grading
from attn_kata.classroom.setting import Setting, too_weak
from attn_kata.engine.client import TooWeak
from attn_kata.engine.pool import EnginePool
from attn_kata.errors import UsageError


class LocalMap:
    """Grades up to `jobs` submissions at a time."""

    def __init__(self, jobs: int, setting: Setting) -> None:
        self._jobs, self._setting = jobs, setting
        self._pool = EnginePool(jobs)
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="engine")

    def width(self) -> int:
        """How many submissions to hand out at a time. Each result is on the disk before the next submission begins."""
        return self._jobs

    def submit(self, code: bytes, name: str) -> Future[dict[str, Any]]:
        """Begin to grade. The result is a report as plain values."""
        return self._threads.submit(grading.grade, self._pool, self._setting, code, name)

    def failed(self, problem: BaseException) -> UsageError | None:
        """The error that ends the run, if this problem is not that of one submission."""
        return too_weak(str(problem)) if isinstance(problem, TooWeak) else None

    def lost(self) -> UsageError | None:
        """None: the pool starts an engine anew where one ends, and a grading has a limit of time."""
        return None

    def __enter__(self) -> LocalMap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._pool.close()
        self._threads.shutdown(cancel_futures=True)
