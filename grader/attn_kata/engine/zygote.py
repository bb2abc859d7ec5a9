"""The grader zygote: a process that has loaded the grader's modules and the katas that were graded, and forks the graders.

The engine forks it when nobody waits, and sends it jobs over a socket. The zygote holds answers, as every grader does.
Attempts are forked from the engine, which holds none, and never from here. To load another kata takes milliseconds: most of the
time goes to the modules and to first operations, which are the same for all.

A forked process copies every page when it first writes to it, and that takes as long as half of a grading. So a grader that
has graded waits for the next job, at most GRADINGS times. When nobody waits, the zygote forks a grader ahead, and this one
grades the reference once while it waits.

It receives ForkAhead, StartJob (the descriptors of the grading follow) and EndGrader. It sends Prewarmed once, and GraderEnded
after every EndGrader. It speaks to its graders with StartJob, and they answer Prewarmed when they can take a job.
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
from attn_kata.engine.fork_worker import FaceStreams, serve_job
from attn_kata.grading import processors
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job

if TYPE_CHECKING:
    from attn_kata.grading.grade import Loaded

Key = tuple[object, ...]

GRADINGS = 50  # of one grader: then a fresh one is forked, so that nothing adds up
_DESCRIPTORS = 3  # of a job: the socket to the engine, the socket to the attempt, the pipe with the attempt's prints


def kata_key(job: Job) -> Key:
    """Everything that a grader that waits depends on: the kata, and the state of the kata's files that it reads."""
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

    def __init__(self, job: Job, detach: Callable[[], FaceStreams]) -> None:
        """In the new process, `detach` closes what belongs to the engine, and returns the descriptors of the face."""
        self._folders = job.katas, job.solutions
        self._ready = False
        self._prepared: Key | None = kata_key(job)  # the zygote forks the first grader without being asked
        self._control, theirs = socket.socketpair()
        engine = os.getpid()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                self._control.close()
                _ZygoteProcess(theirs).run(engine, detach, job)
        finally:
            theirs.close()

    def serves(self, job: Job) -> bool:
        """Whether it grades the katas of these folders."""
        return self._folders == (job.katas, job.solutions)

    def is_ready(self) -> bool:
        """Whether the zygote has loaded what all graders need. Raises ChannelClosed when it is gone."""
        if not self._ready and select.select([self._control], [], [], 0)[0]:
            channel.receive(self._control.fileno())
            self._ready = True
        return self._ready

    def prepare(self, job: Job) -> None:
        """Have the zygote fork the next grader for this kata, if none waits. Raises ChannelClosed when the zygote is gone."""
        key = kata_key(job)
        if self.is_ready() and self._prepared != key:
            channel.send(self._control.fileno(), messages.ForkAhead(job=job))
            self._prepared = key

    def start(self, job: Job, control: socket.socket, endpoints: Endpoints) -> None:
        """Have a grader begin this job. Raises ChannelClosed when the zygote is gone."""
        assert endpoints.output is not None
        self._prepared = None
        _send_job(self._control, job, [control.fileno(), endpoints.channel.fileno(), endpoints.output])

    def end_grader(self) -> None:
        """Kill the grader, unless it can grade again. Raises ChannelClosed when the zygote is gone."""
        channel.send(self._control.fileno(), messages.EndGrader())
        channel.receive(self._control.fileno())

    def close(self) -> None:
        """Kill the zygote. Its grader dies with it."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@dataclass(kw_only=True)
class _Grader:
    """A grader process for a kata, and the zygote's end of the socket to it. `prewarmed`: it is known to wait for a job."""

    key: Key
    pid: int
    line: socket.socket
    prewarmed: bool = False

    def is_prewarmed(self) -> bool:
        """Whether it waits for a job. Raises ChannelClosed when it is gone."""
        if not self.prewarmed and select.select([self.line], [], [], 0)[0]:
            channel.receive(self.line.fileno())
            self.prewarmed = True
        return self.prewarmed

    def start(self, job: Job, descriptors: list[int]) -> None:
        """Give it the job. Raises ChannelClosed when it is gone."""
        self.prewarmed = False
        _send_job(self.line, job, descriptors)

    def end(self) -> None:
        """Kill and reap it."""
        self.line.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class _ZygoteProcess:
    """What runs in the zygote process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._grading: _Grader | None = None
        self._waiting: _Grader | None = None
        self._loaded: dict[Key, Loaded] = {}

    def run(self, engine: int, detach: Callable[[], FaceStreams], job: Job) -> NoReturn:
        try:
            sandbox.guard_engine(engine)
            face = detach()
            gc.enable()
            self._face = face
            self._begin(job)
        except channel.ChannelClosed:
            pass  # the engine is gone
        except BaseException:  # a grader that the engine forks will meet it again, and report it
            traceback.print_exc()
        finally:
            os._exit(0)

    def _begin(self, job: Job) -> NoReturn:
        loaded = self._of(job)
        if loaded is not None:
            loaded.prewarm(job.seed)
        gc.collect()
        gc.freeze()  # a collection in a child would copy the shared pages
        channel.send(self._control.fileno(), messages.Prewarmed())
        self._waiting = self._fork(job, ahead=True)
        self._serve_engine()

    def _of(self, job: Job) -> Loaded | None:
        """The kata of a job; None where it cannot be loaded: its grader tries it again, and reports why."""
        from attn_kata.grading.grade import Loaded

        key = kata_key(job)
        if key not in self._loaded:
            try:
                loaded = Loaded.of(Path(job.katas) / job.slug, Path(job.solutions) / f"{job.slug}.py")
            except Exception:
                return None
            # The same kata before its files changed is not needed again.
            self._loaded = {each: one for each, one in self._loaded.items() if each[0] != job.slug} | {key: loaded}
            gc.freeze()
        return self._loaded[key]

    def _serve_engine(self) -> NoReturn:
        while True:
            order = channel.receive(self._control.fileno())
            if isinstance(order, messages.ForkAhead):
                if self._waiting is None or self._waiting.key != kata_key(order.job):
                    self._end_waiting()
                    self._waiting = self._fork(order.job, ahead=True)
            elif isinstance(order, messages.StartJob):
                self._start(order.job, _receive_descriptors(self._control))
            else:
                self._end_grading()
                channel.send(self._control.fileno(), messages.GraderEnded())

    def _start(self, job: Job, descriptors: list[int]) -> None:
        """Give the job to the grader that waits, or to a new one: forking one is quicker than waiting for one to prewarm."""
        waiting = self._waiting
        if waiting is not None and waiting.key == kata_key(job):
            with contextlib.suppress(channel.ChannelClosed):
                if waiting.is_prewarmed():
                    waiting.start(job, descriptors)
                    self._grading, self._waiting = waiting, None
        self._end_waiting()
        if self._grading is None:
            self._grading = self._fork(job)
            self._grading.start(job, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _end_waiting(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.end()

    def _end_grading(self) -> None:
        """Keep the grader if it waits for another job. Kill it if not."""
        graded, self._grading = self._grading, None
        if graded is None:
            return
        with contextlib.suppress(channel.ChannelClosed):
            if graded.is_prewarmed():
                self._waiting = graded
                return
        graded.end()

    def _fork(self, job: Job, *, ahead: bool = False) -> _Grader:
        """Fork a grader for the kata of a job. One that is forked `ahead` grades the reference first."""
        zygote, loaded = os.getpid(), self._of(job)
        ours, theirs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                sandbox.guard_engine(zygote)
                self._control.close()
                ours.close()
                _GraderProcess(face=self._face, loaded=loaded).run(theirs, job.seed if ahead else None)
            finally:
                os._exit(0)
        theirs.close()
        return _Grader(key=kata_key(job), pid=child, line=ours)


@dataclass(frozen=True, kw_only=True)
class _GraderProcess:
    """What runs in a grader process."""

    face: FaceStreams
    loaded: Loaded | None

    def run(self, line: socket.socket, prewarm: int | None) -> None:
        """Grade job after job. Returns when this process must not grade again, and when the zygote or the face is gone."""
        with contextlib.suppress(channel.ChannelClosed):
            if prewarm is not None:
                if self.loaded is not None:
                    self.loaded.prewarm(prewarm)
                channel.send(line.fileno(), messages.Prewarmed())
            for left in reversed(range(GRADINGS)):
                order = channel.receive(line.fileno())
                assert isinstance(order, messages.StartJob)
                if not self._grade(order.job, _receive_descriptors(line), line, last=not left):
                    return

    def _grade(self, job: Job, descriptors: list[int], line: socket.socket, *, last: bool) -> bool:
        """Grade once. Return whether to wait for another job: the zygote has been told that before the engine hears the end."""

        def offer() -> None:
            if not last:
                channel.send(line.fileno(), messages.Prewarmed())

        control, attempt = (socket.socket(fileno=descriptor) for descriptor in descriptors[:2])
        with control, processors.as_before():
            endpoints = Endpoints(channel=attempt, output=descriptors[2])
            return serve_job(self.face, job, control, endpoints, self.loaded, offer) and not last


def _send_job(line: socket.socket, job: Job, descriptors: list[int]) -> None:
    channel.send(line.fileno(), messages.StartJob(job=job))
    try:
        socket.send_fds(line, [b"F"], descriptors)
    except OSError as error:
        raise channel.ChannelClosed(str(error)) from error


def _receive_descriptors(line: socket.socket) -> list[int]:
    return list(socket.recv_fds(line, 1, _DESCRIPTORS)[1])
