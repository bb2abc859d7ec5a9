"""One attempt process, seen from the grading: requests go out, replies come in, and every wait has a deadline."""

from __future__ import annotations

import os
import secrets
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attn_kata.properties.failures import AttemptDied, OutOfTime
from attn_kata.protocol import wire

OUTPUT_KEPT = 64 << 10  # bytes of an attempt's prints that are kept; the rest is read and discarded


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """The grader's ends of its connection to one attempt process."""

    channel: socket.socket
    output: int | None  # read end of the pipe that the attempt prints into; None if the engine reads it


class AttemptProcess:
    """One attempt process. Its replies are untrusted bytes, and decoded as such."""

    def __init__(self, endpoints: Endpoints, output: bytearray) -> None:
        self._channel = endpoints.channel
        self._channel.setblocking(False)
        self._pipe = endpoints.output
        if endpoints.output is not None:
            os.set_blocking(endpoints.output, False)
        self._output = output
        self._unsent = bytearray()
        self._pending = bytearray()  # bytes that have arrived and are not decoded yet
        self._deadline = 0.0

    def hello(self, seconds: float) -> wire.Reply:
        """The child's first reply: it is confined, and has run nothing of the attempt yet."""
        self._deadline = time.monotonic() + seconds
        return self._decode(0)

    def post(self, question: bytes) -> int:
        """Send a request without waiting, even if the socket is full. Returns the nonce that the reply will carry.

        Replies come in the order of the requests. Only reading a reply shows that the process is gone.
        """
        return self.post_all((question,))[0]

    def post_all(self, questions: Sequence[bytes]) -> list[int]:
        """As `post`, for several requests in as few pieces as the socket takes."""
        nonces = [secrets.randbits(63) + 1 for _ in questions]
        for question, nonce in zip(questions, nonces, strict=True):
            self._unsent += wire.numbered(question, nonce)
        self._send()
        return nonces

    def reply(self, nonce: int, seconds: float) -> wire.Reply:
        """The reply with this nonce. Raises OutOfTime, or AttemptDied if none comes."""
        self._deadline = time.monotonic() + seconds
        return self._decode(nonce)

    @property
    def prints_to_us(self) -> bool:
        """Whether this process reads the attempt's prints. If not, the engine does."""
        return self._pipe is not None

    def drain(self) -> None:
        """Read the prints that have arrived."""
        if self._pipe is not None:
            self._drain()

    def close(self) -> None:
        """Read the last prints, and close the socket and the pipe."""
        self._channel.close()
        self.drain()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _decode(self, nonce: int) -> wire.Reply:
        try:
            return wire.decode_reply(self._receive, nonce)
        except wire.WireError as error:
            raise AttemptDied(f"its process sent something that is not a reply: {error}") from error
        except MemoryError as error:
            raise AttemptDied("its reply does not fit in memory") from error

    def _send(self) -> None:
        """Send as many bytes as the socket takes now."""
        try:
            while self._unsent:
                del self._unsent[: self._channel.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more; replies that were sent before can still be read
            self._unsent.clear()

    def _receive(self, count: int) -> bytearray:
        # The buffer grows as bytes arrive, so a reply that only announces a large size costs no memory.
        while len(self._pending) < count:
            try:
                part = self._channel.recv(min(max(count - len(self._pending), 1 << 16), 1 << 20))
            except BlockingIOError:
                self._wait()
                continue
            except OSError:
                part = b""
            if not part:
                raise AttemptDied("")
            self._pending += part
            if time.monotonic() > self._deadline:  # in a flood of bytes there is always something to read
                raise OutOfTime("it did not answer in time")
        taken = self._pending[:count]
        del self._pending[:count]
        return taken

    def _wait(self) -> None:
        """Wait until bytes of a reply arrive. Meanwhile send requests and read prints, so that no full buffer blocks anyone."""
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise OutOfTime("it did not answer in time")
            reading: list[Any] = [self._channel] if self._pipe is None else [self._channel, self._pipe]
            readable, writable, _ = select.select(reading, [self._channel] if self._unsent else [], [], left)
            if self._pipe in readable:
                self._drain()
            if writable:
                self._send()
            if self._channel in readable:
                return

    def _drain(self) -> None:
        assert self._pipe is not None
        for _ in range(16):  # bounded, so that the deadline is checked even during a flood of prints
            try:
                part = os.read(self._pipe, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                part = b""
            if not part:
                os.close(self._pipe)
                self._pipe = None
                return
            if len(self._output) < OUTPUT_KEPT:
                self._output += part[: OUTPUT_KEPT - len(self._output)]
