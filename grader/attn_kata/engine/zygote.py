"""The grader zygote: a process with one kata loaded, which forks a grader for every grading.

The engine forks it when nobody waits, and sends it jobs over a socket. The zygote holds answers, as every grader does.
Attempts are forked from the engine, which holds none, and never from here.

The zygote also forks one grader ahead, and this one grades the reference once while it waits. A forked process copies every
page when it first writes to it, and that takes as long as half of a grading.

It receives ForkAhead, StartJob (the descriptors of the grading follow) and EndGrader. It sends Prewarmed once, and GraderEnded
after every EndGrader.
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
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job

if TYPE_CHECKING:
    from attn_kata.grading.grade import Loaded

Serve = Callable[[Job, socket.socket, Endpoints, "Loaded"], NoReturn]
Key = tuple[object, ...]

_DESCRIPTORS = 3  # of a job: the socket to the engine, the socket to the attempt, the pipe with the attempt's prints


def zygote_key(job: Job) -> Key:
    """Everything that a zygote depends on: the kata, and the state of the kata's files that it reads."""
    slug, katas, solutions = job.slug, Path(job.katas), Path(job.solutions)
    read = [katas / slug / name for name in ("kata.toml", f"test_{slug}.py", "mistakes.py")] + [
        solutions / f"{slug}.py"
    ]
    return (slug, job.seed, str(katas), str(solutions), *(_state(path) for path in read))


def _state(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size


class GraderZygote:
    """The engine's side of a zygote process."""

    def __init__(self, job: Job, detach: Callable[[], None], serve: Serve) -> None:
        """In the new process, `detach` closes what belongs to the engine. `serve` is the work of a grader."""
        self.key = zygote_key(job)
        self._ready, self._prepared = False, True  # the zygote forks the first grader without being asked
        self._control, theirs = socket.socketpair()
        engine = os.getpid()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                self._control.close()
                _ZygoteProcess(theirs, serve).run(engine, detach, job)
        finally:
            theirs.close()

    def is_ready(self) -> bool:
        """Whether the zygote has loaded its kata. Raises ChannelClosed when it is gone."""
        if not self._ready and select.select([self._control], [], [], 0)[0]:
            channel.receive(self._control.fileno())
            self._ready = True
        return self._ready

    def prepare(self) -> None:
        """Have the zygote fork the next grader, unless one waits already. Raises ChannelClosed when it is gone."""
        if self.is_ready() and not self._prepared:
            channel.send(self._control.fileno(), messages.ForkAhead())
            self._prepared = True

    def start(self, job: Job, control: socket.socket, endpoints: Endpoints) -> None:
        """Have a grader begin this job. Raises ChannelClosed when the zygote is gone."""
        assert endpoints.output is not None
        self._prepared = False
        _send_job(self._control, job, [control.fileno(), endpoints.channel.fileno(), endpoints.output])

    def end_grader(self) -> None:
        """Kill the grader. Raises ChannelClosed when the zygote is gone."""
        channel.send(self._control.fileno(), messages.EndGrader())
        channel.receive(self._control.fileno())

    def close(self) -> None:
        """Kill the zygote. Its grader dies with it."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@dataclass(frozen=True, kw_only=True)
class _ForkedAhead:
    """A grader that was forked ahead, and the zygote's end of the socket to it."""

    pid: int
    line: socket.socket

    def is_prewarmed(self) -> bool:
        """Whether it is prewarmed. If not, forking a new grader is quicker."""
        return bool(select.select([self.line], [], [], 0)[0])


class _ZygoteProcess:
    """What runs in the zygote process."""

    def __init__(self, control: socket.socket, serve: Serve) -> None:
        self._control = control
        self._serve = serve
        self._child: int | None = None
        self._waiting: _ForkedAhead | None = None

    def run(self, engine: int, detach: Callable[[], None], job: Job) -> NoReturn:
        try:
            sandbox.guard_engine(engine)
            detach()
            gc.enable()
            self._load(job)
        except channel.ChannelClosed:
            pass  # the engine is gone
        except BaseException:  # a grader that the engine forks will meet it again, and report it
            traceback.print_exc()
        finally:
            os._exit(0)

    def _load(self, job: Job) -> None:
        from attn_kata.grading.grade import Loaded

        loaded = Loaded.of(Path(job.katas) / job.slug, Path(job.solutions) / f"{job.slug}.py")
        self._seed = job.seed
        loaded.prewarm(job.seed)
        gc.collect()
        gc.freeze()  # a collection in a child would copy the shared pages
        channel.send(self._control.fileno(), messages.Prewarmed())
        self._fork_ahead(loaded)
        self._serve_engine(loaded)

    def _serve_engine(self, loaded: Loaded) -> NoReturn:
        while True:
            order = channel.receive(self._control.fileno())
            if isinstance(order, messages.ForkAhead):
                self._fork_ahead(loaded)
            elif isinstance(order, messages.StartJob):
                self._start(order.job, _receive_descriptors(self._control), loaded)
            else:
                child, self._child = self._child, None
                _end(child)
                channel.send(self._control.fileno(), messages.GraderEnded())

    def _fork_ahead(self, loaded: Loaded) -> None:
        ours, theirs = socket.socketpair()
        child = self._fork()
        if child == 0:
            ours.close()
            loaded.prewarm(self._seed)
            channel.send(theirs.fileno(), messages.Prewarmed())
            order = channel.receive(theirs.fileno())
            assert isinstance(order, messages.StartJob)
            self._run_grader(order.job, _receive_descriptors(theirs), loaded)
        theirs.close()
        self._waiting = _ForkedAhead(pid=child, line=ours)

    def _start(self, job: Job, descriptors: list[int], loaded: Loaded) -> None:
        waiting, self._waiting = self._waiting, None
        self._child = None if waiting is None else self._give_job(waiting, job, descriptors)
        if self._child is None:
            self._child = self._fork()
            if self._child == 0:
                self._run_grader(job, descriptors, loaded)
        for descriptor in descriptors:
            os.close(descriptor)

    def _give_job(self, waiting: _ForkedAhead, job: Job, descriptors: list[int]) -> int | None:
        """Give the job to the grader that waits. Returns its process id, or None if it is not prewarmed."""
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

    def _run_grader(self, job: Job, descriptors: list[int], loaded: Loaded) -> NoReturn:
        control, line = (socket.socket(fileno=descriptor) for descriptor in descriptors[:2])
        self._serve(job, control, Endpoints(channel=line, output=descriptors[2]), loaded)


def _send_job(line: socket.socket, job: Job, descriptors: list[int]) -> None:
    channel.send(line.fileno(), messages.StartJob(job=job))
    try:
        socket.send_fds(line, [b"F"], descriptors)
    except OSError as error:
        raise channel.ChannelClosed(str(error)) from error


def _receive_descriptors(line: socket.socket) -> list[int]:
    return list(socket.recv_fds(line, 1, _DESCRIPTORS)[1])


def _end(child: int | None) -> None:
    if child is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
