"""Framed messages between trusted processes (face, engine, grader child): a kind, a length, then JSON or raw bytes.

Nothing that an attempt wrote is ever read with this; see `wire` for that.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

_FRAME = struct.Struct("<4sQ")
MAX_MESSAGE = 64 << 20


class ChannelClosed(Exception):
    """The other end is gone."""


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte. Raises ChannelClosed when the reader is gone."""
    view = memoryview(data).cast("B")
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except (BrokenPipeError, ConnectionError) as error:
            raise ChannelClosed(str(error)) from error


def read_exactly(descriptor: int, count: int) -> bytes:
    """Read `count` bytes. Raises ChannelClosed when the writer is gone first."""
    parts: list[bytes] = []
    while count:
        try:
            part = os.read(descriptor, min(count, 1 << 20))
        except ConnectionError as error:
            raise ChannelClosed(str(error)) from error
        if not part:
            raise ChannelClosed("end of stream")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def send(descriptor: int, kind: bytes, payload: bytes = b"") -> None:
    """Send one message; `kind` is four bytes."""
    write_all(descriptor, _FRAME.pack(kind, len(payload)) + payload)


def receive(descriptor: int) -> tuple[bytes, bytes]:
    """Receive one message as (kind, payload). Raises ChannelClosed, or ValueError for an absurd length."""
    kind, length = _FRAME.unpack(read_exactly(descriptor, _FRAME.size))
    if length > MAX_MESSAGE:
        raise ValueError(f"a message of {length} bytes")
    return kind, read_exactly(descriptor, length)


def send_json(descriptor: int, kind: bytes, value: Any) -> None:
    """Send one message whose payload is JSON."""
    send(descriptor, kind, json.dumps(value).encode())
