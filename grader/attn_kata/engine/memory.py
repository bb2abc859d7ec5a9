"""Memory settings that make gradings quicker. Where the system does not have them, gradings are slower and just as right."""

from __future__ import annotations

import ctypes
import gc

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
