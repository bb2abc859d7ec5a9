"""What plays the attempt's process in the tests of this folder."""

from __future__ import annotations

import socket
from collections.abc import Callable

import torch

from attn_kata.protocol import wire
from attn_kata.protocol.messages import Request


def read_request(channel: socket.socket) -> tuple[Request, int]:
    """The next request and its nonce. Raises EOFError where the grader hung up."""

    def read(count: int) -> bytearray:
        content = bytearray()
        while len(content) < count:
            part = channel.recv(count - len(content))
            if not part:
                raise EOFError
            content += part
        return content

    return wire.decode_request(read)


def answer(channel: socket.socket, reply: Callable[[int], bytes]) -> None:
    """Read the request, and send `reply(nonce)`. Raises EOFError where the grader hung up."""
    _, nonce = read_request(channel)
    channel.sendall(reply(nonce))


def right(nonce: int) -> bytes:
    """One tensor, (3,)."""
    return wire.encode_reply(nonce, wire.OK, (), ((torch.arange(3.0), 0),))


def reply_of(status: int, texts: tuple[str, ...] = (), count: int = 0, flags: int = 0) -> Callable[[int], bytes]:
    """A reply with these texts and this number of tensors, each (3,)."""
    return lambda nonce: wire.encode_reply(nonce, status, texts, ((torch.arange(3.0), flags),) * count)
