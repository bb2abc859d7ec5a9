"""The threads for slow work: one for the session's store and files, one for gradings. Both live as long as the room."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Threads:
    """Two threads; each does one thing after the other.

    The second may restart the engine. It lives as long as the room, so that engine does too.
    """

    def __init__(self) -> None:
        self._desk = ThreadPoolExecutor(1, "desk")
        self._grading = ThreadPoolExecutor(1, "grading")

    async def at_desk(self, call: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
        """Call a function that reads or writes the session or its file."""
        return await self._in(self._desk, functools.partial(call, *args, **named))

    async def grading(self, call: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
        """Call a function that needs the engine."""
        return await self._in(self._grading, functools.partial(call, *args, **named))

    def close(self) -> None:
        """Start nothing more, and wait for the running work."""
        self._grading.shutdown(cancel_futures=True)
        self._desk.shutdown()

    async def _in(self, pool: ThreadPoolExecutor, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(pool, call)
