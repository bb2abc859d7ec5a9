"""Describes an attempt's exception as texts. The attempt's own code has no say in how its type is described."""

from __future__ import annotations

import builtins
import io
import linecache
import tokenize

MAX_MESSAGE = 4000
MAX_NAME = 200
MAX_FRAMES = 12

# Read before any attempt runs. A class that only has the name of one of these is not one of them.
_BUILTIN = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}


def exception_texts(error: BaseException, filename: str) -> tuple[str, ...]:
    """An exception as texts: the names of its type and bases, its message, then `line function` per frame of `filename`."""
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
    """A class and its bases, without object. Read by `type` itself: a metaclass may define its own `__mro__`."""
    mro: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return mro[:-1]


def type_name(kind: type) -> str:
    """A class's name, read by `type` itself and cut to a bounded length. Commas are removed, because they separate names.

    A class that only has the name of a built-in one is described as "its own ValueError".
    """
    name = _text(type.__dict__["__name__"].__get__(kind), MAX_NAME).replace(",", " ")
    return f"its own {name}" if _BUILTIN.get(name, kind) is not kind else name


def _text(text: str, most: int) -> str:
    """A true str of bounded length: a subclass of str may override slicing and `encode`."""
    return str.__getitem__(text, slice(most)) + ""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python or torch's allocator ran out of memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        type(part) is str and "DefaultCPUAllocator: " in part for part in error.args
    )


def syntax_error(error: SyntaxError | ValueError) -> tuple[str, ...]:
    """A syntax error as texts: the message, the line number, the line."""
    if isinstance(error, SyntaxError):
        return str(error.msg), str(error.lineno or 0), (error.text or "").rstrip()[:200]
    return str(error), "0", ""


def not_decodable(source: bytes) -> str | None:
    """Which line Python cannot decode, and what to do, or None. `compile` does not look into comments; Python does."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    except SyntaxError:  # an unknown encoding, or the first two lines are not UTF-8
        encoding = "utf-8"
    try:
        source.decode(encoding)
    except LookupError:  # an encoding, but not of text
        return None
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        return f"line {line} is not {encoding.upper()}: save the file as UTF-8"
    return None


def remember_lines(source: bytes, filename: str) -> None:
    """Cache the source's lines, so that tracebacks that the attempt prints show them."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        return
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
