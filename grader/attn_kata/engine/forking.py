"""The engine where fork is to be had: one loop over the face's requests and the grader child's.

The grader child asks for attempt processes over a socket of its own; they are forked from here, where no answer was ever
loaded, and never from the grader.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import tempfile
from typing import Any, NoReturn

from . import channel, child, executor, isolation, remote
from .remote import Lines

del executor  # imported here so that the children find it loaded

ATTEMPT_MEMORY = 2 << 30
ATTEMPT_FILES = 1 << 20


class Engine:
    """Forks two children per grading and passes the report on."""

    def __init__(self, *, requests: int, reports: int) -> None:
        self._requests, self._reports = requests, reports
        self._attempt: int | None = None
        self._grader: int | None = None
        self._folder: str | None = None
        self._prepared: dict[int, isolation.Prepared] = {}

    def serve(self) -> NoReturn:
        """Answer requests until the face is gone, then leave without torch's teardown."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        isolation.guard_engine()
        gc.collect()
        gc.freeze()  # what was imported is shared with every child; a collection there would copy its pages
        try:
            channel.send(self._reports, b"REDY")
            while True:
                kind, payload = channel.receive(self._requests)
                if kind == b"GRAD":
                    self._grade(json.loads(payload), channel.receive(self._requests)[1])
                elif kind == b"WARM":
                    import pytest  # noqa: F401 - so that later grader children find it loaded
        except channel.ChannelClosed:
            pass
        finally:
            self._end_attempt()
            os._exit(0)

    def _grade(self, asked: dict[str, Any], source: bytes) -> None:
        ours, theirs = socket.socketpair()
        # The attempt child is forked first, so that it confines itself while the grader loads the kata.
        lines = self._start_attempt(asked)
        grader = os.fork()
        if grader == 0:
            ours.close()
            self._be_grader(asked, source, theirs, lines)
        self._grader = grader
        theirs.close()
        lines.channel.close()
        os.close(lines.output)
        try:
            channel.send(self._reports, *self._follow(ours, asked))
        finally:
            ours.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(grader, signal.SIGKILL)
            os.waitpid(grader, 0)
            self._grader = None
            self._end_attempt()

    def _follow(self, control: socket.socket, asked: dict[str, Any]) -> tuple[bytes, bytes]:
        """Serve the grader's requests for processes; what to tell the face when it is done."""
        while True:
            readable, _, _ = select.select([control, self._requests], [], [])
            if self._requests in readable:
                kind, _ = channel.receive(self._requests)  # raises ChannelClosed when the face is gone
                if kind == b"STOP":
                    return b"STPD", b""
                raise ValueError(f"a request {kind!r} while a grading runs")
            try:
                kind, payload = channel.receive(control.fileno())
            except channel.ChannelClosed:
                return b"FALT", b"the grader's own process ended without a report"
            if kind == b"NEXT":
                lines = self._start_attempt(asked)
                socket.send_fds(control, [b"F"], [lines.channel.fileno(), lines.output])
                lines.channel.close()
                os.close(lines.output)
            elif kind == b"KILL":
                channel.send(control.fileno(), b"DEAD", self._end_attempt(patient=True).encode())
            else:
                return kind, payload

    def _start_attempt(self, asked: dict[str, Any]) -> Lines:
        self._end_attempt()
        tier = asked["tier"]
        if tier not in self._prepared:
            self._prepared[tier] = isolation.prepare(tier=tier, denied=asked["denied"])
        prepared = self._prepared[tier]
        self._folder = tempfile.mkdtemp(prefix="attempt-", dir=os.getcwd())
        ours, theirs = socket.socketpair()
        output, printing = os.pipe()
        engine = os.getpid()
        plan = isolation.Plan(
            tier=tier,
            keep_descriptors=(theirs.fileno(),),
            folder=self._folder,
            cpu_seconds=120,
            memory_bytes=ATTEMPT_MEMORY,
            file_bytes=ATTEMPT_FILES,
            parent_pid=engine,
        )
        pid = os.fork()
        if pid == 0:
            child.run(theirs.fileno(), printing, lambda: isolation.confine(plan, prepared))
        self._attempt = pid
        theirs.close()
        os.close(printing)
        return Lines(channel=ours, output=output)

    def _end_attempt(self, *, patient: bool = False) -> str:
        """Kill the attempt child and whatever it left; how it had ended by itself, in words, or "".

        A child whose socket closed may be about to die of what closed it: being patient tells a crash from our kill.
        """
        how = ""
        if self._attempt is not None:
            how = _ended(self._attempt, patient, self._grader)
            self._attempt = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        return how

    def _be_grader(self, asked: dict[str, Any], source: bytes, control: socket.socket, lines: Lines) -> NoReturn:
        """The grader child: only here are katas and solutions loaded."""
        try:
            isolation.guard_engine(os.getppid())
            os.close(self._requests)
            os.close(self._reports)
            os.dup2(2, 1)
            gc.enable()
            from .grading import grade

            report = grade(asked, source, ForkedSupply(control, lines))
            channel.send_json(control.fileno(), b"REPT", report.to_dict())
        except remote.ConfinementFailed as error:
            channel.send(control.fileno(), b"FALT", str(error).encode())
        except BaseException:  # noqa: BLE001 - told to the face as a fault of ours
            import traceback

            with contextlib.suppress(Exception):
                channel.send(control.fileno(), b"FALT", traceback.format_exc().encode())
        finally:
            os._exit(0)


class ForkedSupply:
    """Attempt processes forked by the engine; the first was forked before the grader was."""

    def __init__(self, control: socket.socket, first: Lines) -> None:
        self._control = control
        self._first: Lines | None = first

    def fresh(self) -> Lines:
        if self._first is not None:
            lines, self._first = self._first, None
            return lines
        channel.send(self._control.fileno(), b"NEXT")
        _, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        return Lines(channel=socket.socket(fileno=descriptors[0]), output=descriptors[1])

    def end(self) -> str:
        channel.send(self._control.fileno(), b"KILL")
        return channel.receive(self._control.fileno())[1].decode()


def _ended(pid: int, patient: bool, grader: int | None) -> str:
    """End a child and whatever it left; how it had ended before that, in words, or ""."""
    for _ in range(25 if patient else 0):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        select.select([], [], [], 0.002)
    by_itself = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    status = isolation.end(pid)
    isolation.end_strays(() if grader is None else (grader,))
    return _in_words(status) if by_itself else ""


def _in_words(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name
        return {
            "SIGSEGV": "it crashed (SIGSEGV: a segmentation fault)",
            "SIGABRT": "it crashed (SIGABRT)",
            "SIGXCPU": "it used up its CPU time",
            "SIGKILL": "it was killed, most likely for want of memory",
        }.get(name, f"it was ended by {name}")
    return f"it ended its process (exit status {os.WEXITSTATUS(status)})"
