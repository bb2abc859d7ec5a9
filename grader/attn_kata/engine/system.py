"""What the engine asks of the system for speed. Each is a wish: where it is not granted, gradings are as right, and slower."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
LARGE = 32 << 20  # bytes; glibc's limit for the second


def share_what_is_loaded() -> None:
    """Share it with every child to come: a collection there would copy its pages."""
    gc.collect()
    gc.freeze()


def keep_freed_memory() -> None:
    """Have glibc keep what the children to come free, for what they allocate next.

    Every page that a process gets anew takes microseconds, and a tensor of 130 by 130 numbers would be given back and got
    again at every operation.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGE)


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
