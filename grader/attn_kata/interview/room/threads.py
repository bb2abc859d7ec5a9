"""Where slow things happen: one thread for the session's store and files, one for gradings. Both live with the room."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Threads:
    """Two threads, each of which does one thing after the other.

    The second may begin an engine anew; as it lives as long as the room, that engine does too.
    """

    def __init__(self) -> None:
        self._desk = ThreadPoolExecutor(1, "desk")
        self._grading = ThreadPoolExecutor(1, "grading")

    async def at_desk(self, call: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
        """Call something that reads or writes the session or its file."""
        return await self._in(self._desk, functools.partial(call, *args, **named))

    async def grading(self, call: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
        """Call something that needs the engine."""
        return await self._in(self._grading, functools.partial(call, *args, **named))

    def close(self) -> None:
        """Begin nothing more, and wait for what is begun."""
        self._grading.shutdown(cancel_futures=True)
        self._desk.shutdown()

    async def _in(self, pool: ThreadPoolExecutor, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(pool, call)
