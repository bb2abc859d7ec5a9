"""Carries messages between trusted processes (face, engine, grading): four bytes of kind, a length, a payload.

It never reads bytes that an attempt wrote: `wire` does that.
"""

from __future__ import annotations

import os
import struct

from attn_kata.protocol import messages
from attn_kata.protocol.messages import Message

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
    """Read `count` bytes. Raises ChannelClosed if the writer goes before that."""
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


def send(descriptor: int, message: Message) -> None:
    """Send one message. Raises ChannelClosed when the reader is gone."""
    payload = messages.encode(message)
    write_all(descriptor, _FRAME.pack(message.kind, len(payload)) + payload)


def receive(descriptor: int) -> Message:
    """Receive one message. Raises ChannelClosed, and ValueError for a message that is too long or of an unknown kind."""
    kind, length = _FRAME.unpack(read_exactly(descriptor, _FRAME.size))
    if length > MAX_MESSAGE:
        raise ValueError(f"a message of {length} bytes")
    return messages.decode(kind, read_exactly(descriptor, length))
