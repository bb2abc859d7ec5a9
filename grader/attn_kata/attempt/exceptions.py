"""An attempt's exception as texts, read so that no code of the attempt's decides what it looks like."""

from __future__ import annotations

import builtins
import io
import linecache
import tokenize

MAX_MESSAGE = 4000
MAX_NAME = 200
MAX_FRAMES = 12

# Taken before any attempt runs: a class that is only named like one of these is not one of them.
_BUILTIN = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}


def told(error: BaseException, filename: str) -> tuple[str, ...]:
    """An exception as texts: the names of its type and its bases, its message, then `line function` per frame of `filename`."""
    bases = ",".join(map(type_name, _bases(type(error))))[:MAX_MESSAGE]
    try:
        message = _text(str(error), MAX_MESSAGE)
    except BaseException:
        message = "(its message could not be read)"
    frames, traceback = [], error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == filename:
            frames.append(f"{traceback.tb_lineno} {code.co_name[:MAX_NAME]}")
        traceback = traceback.tb_next
    return (bases, message, *frames[-MAX_FRAMES:])


def _bases(kind: type) -> tuple[type, ...]:
    """A class and its bases but object, by C's own reading: a metaclass may have an `__mro__` of its own."""
    mro: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return mro[:-1]


def type_name(kind: type) -> str:
    """A class's name by C's own reading, without commas, which separate names, and of bounded length.

    One that has the name of a built-in class and is another is told as "its own ValueError".
    """
    name = _text(type.__dict__["__name__"].__get__(kind), MAX_NAME).replace(",", " ")
    return f"its own {name}" if _BUILTIN.get(name, kind) is not kind else name


def _text(text: str, most: int) -> str:
    """An exact str of bounded length: a subclass would answer `[:most]` and `encode` as it likes."""
    return str.__getitem__(text, slice(most)) + ""


def is_want_of_memory(error: BaseException) -> bool:
    """Whether Python or torch's allocator was refused memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        type(part) is str and "DefaultCPUAllocator: " in part for part in error.args
    )


def syntax_error(error: SyntaxError | ValueError) -> tuple[str, ...]:
    """A syntax error as texts: what it is, the line's number, the line."""
    if isinstance(error, SyntaxError):
        return str(error.msg), str(error.lineno or 0), (error.text or "").rstrip()[:200]
    return str(error), "0", ""


def remember_lines(source: bytes, filename: str) -> None:
    """Let tracebacks that the attempt prints itself show its lines."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        return
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
