"""Calls into the C library that Python does not offer. A failed call raises OSError with its errno."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Union

Argument = Union[int, bytes, "ctypes.Array[ctypes.c_char]", None]


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library


def _passed(argument: Argument) -> object:
    """Pass an int in full width. Otherwise the kernel would read undefined bits in the upper half of a register."""
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def _checked(result: int, name: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def syscall(name: str, number: int, *arguments: Argument) -> int:
    """Make the system call with this number and return its result. Raises OSError with the name of the call."""
    return _checked(int(_library().syscall(ctypes.c_long(number), *map(_passed, arguments))), name)


def call(name: str, *arguments: Argument) -> int:
    """Call the C library's function of this name and return its result. Raises OSError with the name."""
    return _checked(int(getattr(_library(), name)(*map(_passed, arguments))), name)


def buffer(content: bytes) -> ctypes.Array[ctypes.c_char]:
    """Memory with this content, which a call may write to."""
    return ctypes.create_string_buffer(content, len(content))


def prctl(name: str, option: int, value: int = 0, third: int = 0) -> int:
    """Make this prctl(2) call and return its result. Raises OSError with the name of the option."""
    arguments = (ctypes.c_ulong(value), ctypes.c_ulong(third), ctypes.c_ulong(0), ctypes.c_ulong(0))
    return _checked(int(_library().prctl(ctypes.c_int(option), *arguments)), name)
