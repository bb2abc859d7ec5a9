"""One attempt process as the grading sees it: requests out and replies in, every read and write with a deadline."""

from __future__ import annotations

import os
import secrets
import select
import socket
import time
from dataclasses import dataclass
from typing import Any

from attn_kata.properties.failures import AttemptDied, OutOfTime
from attn_kata.protocol import wire

OUTPUT_KEPT = 64 << 10  # bytes of an attempt's prints that are kept; the rest is read and dropped


@dataclass(frozen=True, kw_only=True)
class Lines:
    """The grader's ends of one attempt process."""

    channel: socket.socket
    output: int | None  # the read end of the pipe that the attempt prints into; None where somebody else reads it


class AttemptProcess:
    """One attempt process. Replies are decoded as what they are: bytes of somebody else's."""

    def __init__(self, lines: Lines, output: bytearray) -> None:
        self._channel = lines.channel
        self._channel.setblocking(False)
        self._pipe = lines.output
        if lines.output is not None:
            os.set_blocking(lines.output, False)
        self._output = output
        self._unsent = bytearray()
        self._pending = bytearray()  # what has arrived and was not asked for yet
        self._deadline = 0.0

    def hello(self, seconds: float) -> wire.Reply:
        """What the child says once it is confined, before it runs anything of the attempt's."""
        self._deadline = time.monotonic() + seconds
        return self._decode(0)

    def post(self, question: bytes) -> int:
        """Ask, and do not wait: for nothing, not even for room. The number that the reply will have.

        Replies come in the order of the questions. Whether the process is gone is seen when they are read.
        """
        nonce = secrets.randbits(63) + 1
        self._unsent += wire.numbered(question, nonce)
        self._send()
        return nonce

    def reply(self, nonce: int, seconds: float) -> wire.Reply:
        """The reply of that number. Raises OutOfTime, or AttemptDied where none comes."""
        self._deadline = time.monotonic() + seconds
        return self._decode(nonce)

    @property
    def prints_to_us(self) -> bool:
        """Whether the prints come here, and not to somebody else."""
        return self._pipe is not None

    def drain(self) -> None:
        """Take what has been printed."""
        if self._pipe is not None:
            self._drain()

    def close(self) -> None:
        """Take what is left of the prints, and let go of both ends."""
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
        """Send what there is room for."""
        try:
            while self._unsent:
                del self._unsent[: self._channel.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more; what was answered before that can still be read
            self._unsent.clear()

    def _receive(self, count: int) -> bytearray:
        # Grown as bytes arrive, so that a promised size costs nothing before it is kept.
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
            if time.monotonic() > self._deadline:  # a flood is always ready to be read
                raise OutOfTime("it did not answer in time")
        taken = self._pending[:count]
        del self._pending[:count]
        return taken

    def _wait(self) -> None:
        """Wait until something has arrived, sending and reading the prints meanwhile, so that nothing full blocks anybody."""
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
        for _ in range(16):  # bounded, so that a flood of prints does not keep the deadline from being seen
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
