"""The grader zygote: a process with one kata loaded, which forks a grader for every grading.

The engine forks it when nobody waits, and tells it over a socket what to grade. It holds answers, as every grader child
does; the engine, from which attempts are forked, holds none, and no attempt is forked from here.

A grader child is forked ahead as well, and has graded the reference once: a forked process copies every page that it writes
for the first time, which takes as long as half of a grading.

Messages to it: ForkAhead, StartJob (the descriptors of the grading's lines follow it) and EndGrader. From it: Prewarmed once,
GraderEnded after every EndGrader.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from attn_kata import sandbox
from attn_kata.grading.attempt_process import Lines
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job

if TYPE_CHECKING:
    from attn_kata.grading.grade import Loaded

Serve = Callable[[Job, socket.socket, Lines, "Loaded"], NoReturn]
Key = tuple[object, ...]

PREWARM_SECONDS = 20.0  # for the diagnosis that is run once; it takes less than one
_LINES = 3  # descriptors of a job: the engine's line, the attempt's, the attempt's prints


def key_of(job: Job) -> Key:
    """What a zygote depends on: the kata, and the files that it reads of it."""
    slug, katas, solutions = job.slug, Path(job.katas), Path(job.solutions)
    read = [katas / slug / name for name in ("kata.toml", f"test_{slug}.py", "mistakes.py")] + [solutions / f"{slug}.py"]
    return (slug, str(katas), str(solutions), *(_state(path) for path in read))


def _state(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


class GraderZygote:
    """The engine's side of a zygote process."""

    def __init__(self, job: Job, become: Callable[[], None], serve: Serve) -> None:
        """`become` lets go, in the new process, of what is the engine's; `serve` is what a grader child does."""
        self.key = key_of(job)
        self._ready, self._prepared = False, True  # it prepares the first one by itself
        self._control, theirs = socket.socketpair()
        engine = os.getpid()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                self._control.close()
                _Process(theirs, serve).run(engine, become, job)
        finally:
            theirs.close()

    def is_ready(self) -> bool:
        """Whether it has loaded its kata. Raises ChannelClosed when it is gone."""
        if not self._ready and select.select([self._control], [], [], 0)[0]:
            channel.receive(self._control.fileno())
            self._ready = True
        return self._ready

    def prepare(self) -> None:
        """Have it fork the next grader child, where it has none that waits. Raises ChannelClosed when it is gone."""
        if self.is_ready() and not self._prepared:
            channel.send(self._control.fileno(), messages.ForkAhead())
            self._prepared = True

    def start(self, job: Job, control: socket.socket, lines: Lines) -> None:
        """Have a grader child begin. Raises ChannelClosed when the zygote is gone."""
        assert lines.output is not None
        self._prepared = False
        _send_job(self._control, job, [control.fileno(), lines.channel.fileno(), lines.output])

    def end_child(self) -> None:
        """Kill the grader child. Raises ChannelClosed when the zygote is gone."""
        channel.send(self._control.fileno(), messages.EndGrader())
        channel.receive(self._control.fileno())

    def close(self) -> None:
        """Kill the zygote; its child dies with it."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    """A grader child that was forked ahead, and the zygote's end of its line."""

    pid: int
    line: socket.socket

    def is_prewarmed(self) -> bool:
        """Whether it has come so far that it is quicker than a new one."""
        return bool(select.select([self.line], [], [], 0)[0])


class _Process:
    """What runs in the zygote process."""

    def __init__(self, control: socket.socket, serve: Serve) -> None:
        self._control = control
        self._serve = serve
        self._child: int | None = None
        self._waiting: _Waiting | None = None

    def run(self, engine: int, become: Callable[[], None], job: Job) -> NoReturn:
        try:
            sandbox.guard_engine(engine)
            become()
            gc.enable()
            self._load(job)
        except channel.ChannelClosed:
            pass  # the engine is gone
        except BaseException:  # a grader child of the engine's will meet it again, and tell it
            traceback.print_exc()
        finally:
            os._exit(0)

    def _load(self, job: Job) -> None:
        from attn_kata.grading.grade import Loaded

        loaded = Loaded.of(Path(job.katas) / job.slug, Path(job.solutions) / f"{job.slug}.py")
        loaded.prewarm(seconds=PREWARM_SECONDS)
        gc.collect()
        gc.freeze()  # shared with every child; a collection there would copy its pages
        channel.send(self._control.fileno(), messages.Prewarmed())
        self._fork_ahead(loaded)
        self._wait_for_orders(loaded)

    def _wait_for_orders(self, loaded: Loaded) -> NoReturn:
        while True:
            order = channel.receive(self._control.fileno())
            if isinstance(order, messages.ForkAhead):
                self._fork_ahead(loaded)
            elif isinstance(order, messages.StartJob):
                self._start(order.job, _receive_lines(self._control), loaded)
            else:
                child, self._child = self._child, None
                _end(child)
                channel.send(self._control.fileno(), messages.GraderEnded())

    def _fork_ahead(self, loaded: Loaded) -> None:
        ours, theirs = socket.socketpair()
        child = self._fork()
        if child == 0:
            ours.close()
            loaded.prewarm(seconds=PREWARM_SECONDS)
            channel.send(theirs.fileno(), messages.Prewarmed())
            order = channel.receive(theirs.fileno())
            assert isinstance(order, messages.StartJob)
            self._be_grader(order.job, _receive_lines(theirs), loaded)
        theirs.close()
        self._waiting = _Waiting(pid=child, line=ours)

    def _start(self, job: Job, descriptors: list[int], loaded: Loaded) -> None:
        waiting, self._waiting = self._waiting, None
        self._child = None if waiting is None else self._hand_over(waiting, job, descriptors)
        if self._child is None:
            self._child = self._fork()
            if self._child == 0:
                self._be_grader(job, descriptors, loaded)
        for descriptor in descriptors:
            os.close(descriptor)

    def _hand_over(self, waiting: _Waiting, job: Job, descriptors: list[int]) -> int | None:
        """Give the job to the child that waits; None where it is not ready for it."""
        with waiting.line:
            if waiting.is_prewarmed():
                with contextlib.suppress(channel.ChannelClosed):
                    _send_job(waiting.line, job, descriptors)
                    return waiting.pid
        _end(waiting.pid)
        return None

    def _fork(self) -> int:
        zygote = os.getpid()
        child = os.fork()
        if child == 0:
            sandbox.guard_engine(zygote)
            self._control.close()
        return child

    def _be_grader(self, job: Job, descriptors: list[int], loaded: Loaded) -> NoReturn:
        control, line = (socket.socket(fileno=descriptor) for descriptor in descriptors[:2])
        self._serve(job, control, Lines(channel=line, output=descriptors[2]), loaded)


def _send_job(line: socket.socket, job: Job, descriptors: list[int]) -> None:
    channel.send(line.fileno(), messages.StartJob(job=job))
    try:
        socket.send_fds(line, [b"F"], descriptors)
    except OSError as error:
        raise channel.ChannelClosed(str(error)) from error


def _receive_lines(line: socket.socket) -> list[int]:
    return list(socket.recv_fds(line, 1, _LINES)[1])


def _end(child: int | None) -> None:
    if child is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
