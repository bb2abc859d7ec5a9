"""Which processor a process runs on. If the system does not let us choose, gradings are slower and the results are the same."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator


def this_processor() -> int | None:
    """The number of the processor that this process runs on, or None if the system does not tell."""
    getter = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    number = -1 if getter is None else int(getter())
    return number if number >= 0 else None


def keep_off(processor: int | None) -> None:
    """Move this process to the other processors, if there are any: another process works on this one at the same time."""
    if processor is not None:
        with contextlib.suppress(OSError):
            others = os.sched_getaffinity(0) - {processor}
            if others:
                os.sched_setaffinity(0, others)


@contextlib.contextmanager
def as_before() -> Iterator[None]:
    """Let this process run again, afterwards, on the processors that it may run on now."""
    allowed = None
    with contextlib.suppress(OSError):
        allowed = os.sched_getaffinity(0)
    try:
        yield
    finally:
        if allowed is not None:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, allowed)


def stay_on(processor: int | None, pid: int = 0) -> None:
    """Keep a process (0: this one) on this processor.

    For two processes that take turns: waking a process on another processor takes as long as most answers.
    """
    if processor is not None:
        with contextlib.suppress(OSError):  # the processor is gone, or may not be chosen
            os.sched_setaffinity(pid, {processor})
