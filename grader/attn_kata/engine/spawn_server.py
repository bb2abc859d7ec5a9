"""The engine on systems that cannot fork (Windows, and macOS once frameworks are loaded): spawned processes, tier 0.

A grader and an attempt process with torch loaded are always ready. Each serves one grading and is then replaced. This module
does not import torch, does not fork, does not select on pipes, and at import uses no name that only POSIX has.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from attn_kata import sandbox
from attn_kata.engine import exit_status
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Message

OUTPUT_KEPT = 64 << 10
GRACE_SECONDS = 0.2  # a crashing child gets this long to end by itself, so that a crash is not mistaken for our kill
LAST_PRINTS_SECONDS = 0.5  # for reading the last prints of a process that has ended


Event = tuple[object, Message | None]  # the sender and the message; None when the sender is gone


class SpawnServer:
    """Spawns two children per grading and passes the report on. All messages arrive in one queue."""

    def __init__(self, *, requests: int, reports: int, folders: list[str]) -> None:
        self._requests, self._reports, self._folders = requests, reports, folders
        self._events: queue.Queue[Event] = queue.Queue()
        self._grader: _SpawnedGrader | None = None
        self._spare: _SpawnedAttempt | None = None
        self._attempt: _SpawnedAttempt | None = None
        self._ready = False  # whether the face knows that torch is loaded: a grading may be cancelled before that

    def serve(self) -> None:
        """Answer requests until the face is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sandbox.guard_engine()
        threading.Thread(target=_forward_messages, args=(self._requests, self, self._events), daemon=True).start()
        try:
            self._start_missing_children()
            while True:
                sender, message = self._events.get()
                if sender is self._grader and isinstance(message, messages.Ready):
                    self._tell_ready()
                elif sender is self._grader and message is None and not self._ready:
                    raise RuntimeError("the grader process did not start")
                elif sender is self and isinstance(message, messages.Grade):
                    self._grade(message, self._next_request())
                    self._start_missing_children()
                elif sender is self and message is None:
                    return
        except channel.ChannelClosed:
            return
        finally:
            for child in (self._grader, self._attempt, self._spare):
                if child is not None:
                    child.end()

    def _tell_ready(self) -> None:
        if not self._ready:
            channel.send(self._reports, messages.Ready())
            self._ready = True

    def _start_missing_children(self) -> None:
        """Start a grader and a spare attempt process where they are missing. Both begin to import torch."""
        if self._grader is None:
            self._grader = _SpawnedGrader(self._folders, self._events)
        if self._spare is None:
            self._spare = _SpawnedAttempt(self._folders)

    def _next_request(self) -> Message:
        while True:
            sender, message = self._events.get()
            if sender is self:
                if message is None:
                    raise channel.ChannelClosed("the face is gone")
                return message
            self._events.put((sender, message))  # a Ready of the grader: keep it for later

    def _grade(self, asked: messages.Grade, source: Message) -> None:
        grader = self._grader
        assert grader is not None
        try:
            with contextlib.suppress(channel.ChannelClosed):  # its end will arrive as an event
                channel.send(grader.requests, asked)
                channel.send(grader.requests, source)
            message = self._serve_grader(grader)
        finally:
            self._grader = None
            grader.end()
            self._end_attempt()
        channel.send(self._reports, message)

    def _serve_grader(self, grader: _SpawnedGrader) -> Message:
        """Serve the grader's requests for attempt processes. Return the message for the face when the grading is over."""
        while True:
            sender, message = self._events.get()
            if sender is self:
                if message is None:
                    raise channel.ChannelClosed("the face is gone")
                if isinstance(message, messages.Cancel):
                    return messages.Cancelled()
                raise ValueError(f"a {type(message).__name__} while a grading runs")
            if sender is not grader:
                continue  # a late message of an earlier grader
            try:
                if message is None:
                    return messages.Fault(text="the grader process ended without a report")
                if isinstance(message, messages.Ready):
                    self._tell_ready()
                elif isinstance(message, messages.NewAttempt):
                    self._end_attempt()
                    self._attempt, self._spare = self._spare or _SpawnedAttempt(self._folders), None
                    self._attempt.join(message)
                elif isinstance(message, messages.EndAttempt):
                    channel.send(grader.requests, self._end_attempt())
                else:
                    return message
            except channel.ChannelClosed:
                continue  # its end will arrive as an event

    def _end_attempt(self) -> messages.AttemptEnded:
        """End the attempt process. Return how it ended by itself, in words, and its prints."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return messages.AttemptEnded()
        how = attempt.end()
        return messages.AttemptEnded(how=how, printed=attempt.printed)


class _Child:
    """A spawned process with torch: a fresh, isolated interpreter (-I), which ignores PYTHON variables and user packages."""

    def __init__(self, role: str, folders: list[str], *, errors: int | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("server.py")), role, *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=os.name == "posix",  # so that everything it starts can be killed with it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.requests = self._process.stdin.fileno()
        self.answers = self._process.stdout.fileno()

    def end(self, *, grace_seconds: float = 0.0) -> str:
        """Kill the process and its session. Return how it ended by itself, in words, or ""."""
        how = ""
        try:
            how = exit_status.describe(self._process.wait(grace_seconds))
        except subprocess.TimeoutExpired:
            self._process.kill()
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
        return how


class _SpawnedGrader(_Child):
    """A grader. Its messages go to the engine's queue."""

    def __init__(self, folders: list[str], events: queue.Queue[Event]) -> None:
        super().__init__("grader", folders, errors=None)
        threading.Thread(target=_forward_messages, args=(self.answers, self, events), daemon=True).start()


class _SpawnedAttempt(_Child):
    """An attempt process. It connects to the grader when `join` names the port. A thread reads the pipe that it prints into."""

    def __init__(self, folders: list[str]) -> None:
        super().__init__("attempt", folders, errors=subprocess.STDOUT)
        self._output = bytearray()
        self._folder: str | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def printed(self) -> bytes:
        return bytes(self._output)

    def join(self, where: messages.NewAttempt) -> None:
        """Have it connect to the grader's port and serve."""
        self._folder = tempfile.mkdtemp(prefix="attempt-", dir=os.getcwd())
        with contextlib.suppress(channel.ChannelClosed):  # the grader stops waiting after a while
            joining = messages.Join(port=where.port, token=where.token, folder=self._folder, engine=os.getpid())
            channel.send(self.requests, joining)

    def end(self, *, grace_seconds: float = GRACE_SECONDS) -> str:
        how = super().end(grace_seconds=grace_seconds)
        self._reader.join(LAST_PRINTS_SECONDS)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return how

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while part := os.read(self.answers, 1 << 16):
                self._output += part[: max(0, OUTPUT_KEPT - len(self._output))]


def _forward_messages(descriptor: int, sender: object, events: queue.Queue[Event]) -> None:
    """Put every message of a pipe into the queue. The end of the pipe is put as None."""
    try:
        while True:
            events.put((sender, channel.receive(descriptor)))
    except (channel.ChannelClosed, OSError, ValueError):
        events.put((sender, None))
