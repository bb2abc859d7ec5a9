"""Open files: an attempt keeps its standard streams and its channel, and no other descriptor of the engine."""

from __future__ import annotations

import os
from collections.abc import Collection

from attn_kata.sandbox import libc

CLOSE_RANGE = 436  # the same number on every architecture
_FIRST_AFTER_STDIO = 3
_LARGEST = 0xFFFFFFFF


def close_all_but(keep: Collection[int]) -> None:
    """Close every descriptor from 3 on that is not in `keep`: others lead to the answers, the report and other attempts."""
    try:
        first = _FIRST_AFTER_STDIO
        for kept in sorted(fd for fd in keep if fd >= _FIRST_AFTER_STDIO):
            if kept > first:
                libc.syscall("close_range", CLOSE_RANGE, first, kept - 1, 0)
            first = kept + 1
        libc.syscall("close_range", CLOSE_RANGE, first, _LARGEST, 0)
    except (OSError, AttributeError, TypeError):  # Linux before 5.9, an old container's filter, or another system
        _close_each(keep)


def _close_each(keep: Collection[int]) -> None:
    for fd in _open_descriptors():
        if fd >= _FIRST_AFTER_STDIO and fd not in keep:
            try:
                os.close(fd)
            except OSError:  # the descriptor of the listing itself, which is closed already
                continue


def _open_descriptors() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return [int(name) for name in os.listdir(folder)]
        except OSError:
            continue
    return list(range(_FIRST_AFTER_STDIO, 4096))
