"""Memory settings that make gradings quicker, and how much memory an engine occupies.

On systems without these settings, gradings are slower and the results are the same.
"""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
LARGE = 32 << 20  # bytes; the most that glibc allows for M_MMAP_THRESHOLD


def freeze_loaded_objects() -> None:
    """Exclude what is loaded now from garbage collection, in this process and in every child.

    A collection in a child would write to the shared pages, and so copy them. Nothing is collected before: importing torch
    leaves almost no garbage, and looking for it takes a twelfth of the import's time.
    """
    gc.freeze()


def keep_freed_memory() -> None:
    """Have glibc keep freed memory for the next allocation, in this process and its children.

    Every new page costs microseconds. Without this, a tensor of 130 by 130 numbers would be returned to the system and
    requested again at every operation.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGE)


def of_process(pid: int) -> int | None:
    """The resident bytes of the largest of a process and its children. None if the system does not tell; 0 if it is gone.

    They share most of their pages, so their sum would say how many there are, and not that one of them has grown.
    """
    if not os.path.isdir("/proc/self/task"):
        return None
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in (str(pid), *children)]
    except (OSError, IndexError):  # one of them has just ended
        return 0
    return max(pages) * os.sysconf("SC_PAGE_SIZE")
