"""The engine where fork is not to be had (macOS once frameworks are loaded, Windows): fresh processes, tier 0.

A grader child and an attempt child that have torch loaded stand ready; used ones are replaced when their grading is over.
Nothing here imports torch, forks, selects on pipes or names what only POSIX has at import.
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
PATIENCE_SECONDS = 0.2  # for a child that is dying by itself, to tell a crash from our kill
REST_SECONDS = 0.5  # for the rest of the prints of a process that is gone


Event = tuple[object, Message | None]  # who sent it, and what; None where the sender is gone


class SpawnServer:
    """Spawns two children per grading and passes the report on. What happens, happens in one queue."""

    def __init__(self, *, requests: int, reports: int, folders: list[str]) -> None:
        self._requests, self._reports, self._folders = requests, reports, folders
        self._events: queue.Queue[Event] = queue.Queue()
        self._grader: _SpawnedGrader | None = None
        self._spare: _SpawnedAttempt | None = None
        self._attempt: _SpawnedAttempt | None = None

    def serve(self) -> None:
        """Answer requests until the face is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sandbox.guard_engine()
        threading.Thread(target=_pump, args=(self._requests, self, self._events), daemon=True).start()
        try:
            self._stand_ready()
            ready = False
            while True:
                sender, told = self._events.get()
                if sender is self._grader and isinstance(told, messages.Ready) and not ready:
                    channel.send(self._reports, messages.Ready())
                    ready = True
                elif sender is self._grader and told is None and not ready:
                    raise RuntimeError("the grader's process did not start")
                elif sender is self and isinstance(told, messages.Grade):
                    self._grade(told, self._next_request(), ready=ready)
                    ready = True
                    self._stand_ready()
                elif sender is self and told is None:
                    return
        except channel.ChannelClosed:
            return
        finally:
            for child in (self._grader, self._attempt, self._spare):
                if child is not None:
                    child.end()

    def _stand_ready(self) -> None:
        """Have a fresh grader child and an attempt child in spare, with torch loading in both."""
        if self._grader is None:
            self._grader = _SpawnedGrader(self._folders, self._events)
        if self._spare is None:
            self._spare = _SpawnedAttempt(self._folders)

    def _next_request(self) -> Message:
        while True:
            sender, told = self._events.get()
            if sender is self:
                if told is None:
                    raise channel.ChannelClosed("the face is gone")
                return told
            self._events.put((sender, told))  # the grader's, for later: it only says that it is there

    def _grade(self, asked: messages.Grade, source: Message, *, ready: bool) -> None:
        grader = self._grader
        assert grader is not None
        try:
            with contextlib.suppress(channel.ChannelClosed):  # its end is among the events
                channel.send(grader.requests, asked)
                channel.send(grader.requests, source)
            told = self._follow(grader, ready=ready)
        finally:
            self._grader = None
            grader.end()
            self._end_attempt()
        channel.send(self._reports, told)

    def _follow(self, grader: _SpawnedGrader, *, ready: bool) -> Message:
        """Serve the grader's requests for processes; what to tell the face when it is done."""
        while True:
            sender, told = self._events.get()
            if sender is self:
                if told is None:
                    raise channel.ChannelClosed("the face is gone")
                if isinstance(told, messages.Cancel):
                    return messages.Cancelled()
                raise ValueError(f"a {type(told).__name__} while a grading runs")
            if sender is not grader:
                continue  # the last words of an earlier one
            try:
                if told is None:
                    return messages.Fault(text="the grader's own process ended without a report")
                if isinstance(told, messages.Ready):
                    if not ready:
                        channel.send(self._reports, told)
                elif isinstance(told, messages.NewAttempt):
                    self._end_attempt()
                    self._attempt, self._spare = self._spare or _SpawnedAttempt(self._folders), None
                    self._attempt.join(told)
                elif isinstance(told, messages.EndAttempt):
                    channel.send(grader.requests, self._end_attempt())
                else:
                    return told
            except channel.ChannelClosed:
                continue  # its end is among the events

    def _end_attempt(self) -> messages.AttemptEnded:
        """End the attempt process: how it had ended by itself, in words, and what it printed."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return messages.AttemptEnded()
        how = attempt.end()
        return messages.AttemptEnded(how=how, printed=attempt.printed)


class _Child:
    """A process of ours with torch, started as a fresh interpreter that reads nothing of the caller's."""

    def __init__(self, role: str, folders: list[str], *, errors: int | None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("server.py")), role, *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=os.name == "posix",  # so that what it starts ends with it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.requests = self._process.stdin.fileno()
        self.answers = self._process.stdout.fileno()

    def end(self, *, patience: float = 0.0) -> str:
        """Kill it and what it left in its session; how it had ended by itself, in words, or ""."""
        how = ""
        try:
            how = exit_status.describe(self._process.wait(patience))
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
    """A grader child: it answers to the engine's queue."""

    def __init__(self, folders: list[str], events: queue.Queue[Event]) -> None:
        super().__init__("grader", folders, errors=None)
        threading.Thread(target=_pump, args=(self.answers, self, events), daemon=True).start()


class _SpawnedAttempt(_Child):
    """An attempt child: it connects to the grader when it is told where, and prints into a pipe that a thread reads."""

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
        """Have it connect to the grader, where that listens, and serve."""
        self._folder = tempfile.mkdtemp(prefix="attempt-", dir=os.getcwd())
        with contextlib.suppress(channel.ChannelClosed):  # the grader waits for it, but not for ever
            joining = messages.Join(port=where.port, token=where.token, folder=self._folder, engine=os.getpid())
            channel.send(self.requests, joining)

    def end(self, *, patience: float = PATIENCE_SECONDS) -> str:
        how = super().end(patience=patience)
        self._reader.join(REST_SECONDS)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return how

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while part := os.read(self.answers, 1 << 16):
                self._output += part[: max(0, OUTPUT_KEPT - len(self._output))]


def _pump(descriptor: int, sender: object, events: queue.Queue[Event]) -> None:
    """Put every message of a pipe among the events; its end too, as None."""
    try:
        while True:
            events.put((sender, channel.receive(descriptor)))
    except (channel.ChannelClosed, OSError, ValueError):
        events.put((sender, None))
