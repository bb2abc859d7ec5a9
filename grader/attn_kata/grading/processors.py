"""Which processor a process runs on. Where the system does not let us choose, gradings are slower and just as right."""

from __future__ import annotations

import contextlib
import ctypes
import os


def this_processor() -> int | None:
    """The number of the processor that this process runs on, None where nobody says."""
    getter = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    number = -1 if getter is None else int(getter())
    return number if number >= 0 else None


def keep_off(processor: int | None) -> None:
    """Have this process run on the other processors, where there are any: beside one that works at the same time."""
    if processor is not None:
        with contextlib.suppress(OSError):
            others = os.sched_getaffinity(0) - {processor}
            if others:
                os.sched_setaffinity(0, others)


def stay_on(processor: int | None, pid: int = 0) -> None:
    """Have a process (0: this one) run on that processor alone.

    For two processes that only ever take turns: to wake one on another processor takes as long as most answers.
    """
    if processor is not None:
        with contextlib.suppress(OSError):  # it was taken away meanwhile, or may not be chosen
            os.sched_setaffinity(pid, {processor})
