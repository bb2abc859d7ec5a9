"""The engine where fork is not to be had (macOS once frameworks are loaded, Windows): fresh processes, tier 0.

A grader child and an attempt child that have torch loaded stand ready; used ones are replaced when their grading is over.
Nothing here imports torch, forks, selects on pipes or names what only POSIX has at import.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from . import channel, ending, isolation

OUTPUT_KEPT = 64 << 10
PATIENCE_SECONDS = 0.2  # for a child that is dying by itself, to tell a crash from our kill
REST_SECONDS = 0.5  # for the rest of the prints of a process that is gone


class Engine:
    """Spawns two children per grading and passes the report on. What happens, happens in one queue."""

    def __init__(self, *, requests: int, reports: int, folders: list[str]) -> None:
        self._requests, self._reports, self._folders = requests, reports, folders
        self._events: queue.Queue[tuple[object, bytes, bytes]] = queue.Queue()
        self._grader: _Grader | None = None
        self._spares: list[_Attempt] = []
        self._attempt: _Attempt | None = None

    def serve(self) -> None:
        """Answer requests until the face is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        isolation.guard_engine()
        threading.Thread(target=_pump, args=(self._requests, self, self._events), daemon=True).start()
        try:
            self._stand_ready()
            ready = False
            while True:
                sender, kind, payload = self._events.get()
                if sender is self._grader and kind == b"REDY" and not ready:
                    channel.send(self._reports, b"REDY")
                    ready = True
                elif sender is self._grader and kind == b"" and not ready:
                    raise RuntimeError("the grader's process did not start")
                elif sender is self and kind == b"GRAD":
                    self._grade(payload, self._next_request(), ready=ready)
                    ready = True
                    self._stand_ready()
                elif sender is self and not kind:
                    return
        except channel.ChannelClosed:
            return
        finally:
            for child in (self._grader, self._attempt, *self._spares):
                if child is not None:
                    child.end()

    def _stand_ready(self) -> None:
        """Have a fresh grader child and an attempt child in spare, with torch loading in both."""
        if self._grader is None:
            self._grader = _Grader(self._folders, self._events)
        self._have_spares(1)

    def _have_spares(self, count: int) -> None:
        while len(self._spares) < count:
            self._spares.append(_Attempt(self._folders))

    def _next_request(self) -> bytes:
        while True:
            sender, kind, payload = self._events.get()
            if sender is self:
                if not kind:
                    raise channel.ChannelClosed("the face is gone")
                return payload
            self._events.put((sender, kind, payload))  # the grader's, for later: it only says that it is there

    def _grade(self, asked: bytes, source: bytes, *, ready: bool) -> None:
        grader = self._grader
        assert grader is not None
        try:
            with contextlib.suppress(channel.ChannelClosed):  # that it is gone is among the events
                channel.send(grader.requests, b"GRAD", asked)
                channel.send(grader.requests, b"SRCE", source)
            told = self._follow(grader, ready=ready, to_come=2 if json.loads(asked)["unaided"] else 0)
        finally:
            self._grader = None
            grader.end()
            self._end_attempt()
        channel.send(self._reports, *told)

    def _follow(self, grader: _Grader, *, ready: bool, to_come: int) -> tuple[bytes, bytes]:
        """Serve the grader's requests for processes; what to tell the face when it is done.

        After the first of them as many are likely `to_come`, for a second look: torch is loaded in them meanwhile.
        """
        while True:
            sender, kind, payload = self._events.get()
            if sender is self:
                if not kind:
                    raise channel.ChannelClosed("the face is gone")
                if kind == b"STOP":
                    return b"STPD", b""
                raise ValueError(f"a request {kind!r} while a grading runs")
            if sender is not grader:
                continue  # the last words of an earlier one
            try:
                if kind == b"REDY":
                    if not ready:
                        channel.send(self._reports, b"REDY")
                elif kind == b"NEXT":
                    self._end_attempt()
                    self._have_spares(1)
                    self._attempt = self._spares.pop(0)
                    self._attempt.join(json.loads(payload))
                    self._have_spares(to_come)
                    to_come = max(0, to_come - 1)
                elif kind == b"KILL":
                    channel.send_json(grader.requests, b"DEAD", self._end_attempt())
                elif kind == b"":
                    return b"FALT", b"the grader's own process ended without a report"
                else:
                    return kind, payload
            except channel.ChannelClosed:
                continue  # its end is among the events

    def _end_attempt(self) -> dict[str, str]:
        """End the attempt process: how it had ended by itself, in words, and what it printed."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return {"how": "", "printed": ""}
        how = attempt.end()
        return {"how": how, "printed": base64.b64encode(attempt.printed).decode()}


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
            how = ending.in_words(self._process.wait(patience))
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


class _Grader(_Child):
    """A grader child: it answers to the engine's queue."""

    def __init__(self, folders: list[str], events: queue.Queue[tuple[object, bytes, bytes]]) -> None:
        super().__init__("grader", folders, errors=None)
        threading.Thread(target=_pump, args=(self.answers, self, events), daemon=True).start()


class _Attempt(_Child):
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

    def join(self, where: dict[str, Any]) -> None:
        """Have it connect to `where` (a port of this machine and a token) and serve."""
        self._folder = tempfile.mkdtemp(prefix="attempt-", dir=os.getcwd())
        with contextlib.suppress(channel.ChannelClosed):  # the grader waits for it, but not for ever
            channel.send_json(self.requests, b"JOIN", {**where, "folder": self._folder, "engine": os.getpid()})

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


def _pump(descriptor: int, sender: object, events: queue.Queue[tuple[object, bytes, bytes]]) -> None:
    """Put every message of a pipe among the events; its end too, as a message of no kind."""
    try:
        while True:
            events.put((sender, *channel.receive(descriptor)))
    except (channel.ChannelClosed, OSError, ValueError):
        events.put((sender, b"", b""))
