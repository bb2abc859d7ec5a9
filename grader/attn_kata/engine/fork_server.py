"""The engine on systems that can fork: one loop over the requests of the face and of the grader.

The grader asks for attempt processes over its own socket. The engine forks them, because it never loads an answer; the grader
does. For the same reason the grader itself reads the source from the face and writes the report to it. Anything that passed
through the engine would stay in its memory, and every later attempt process inherits that memory and could read it.

After a grading, when nobody waits, or when the next one is there already, the engine prepares the next grading. It forks a
grader zygote, which loads the katas and from then on forks the graders, and a spare attempt process, confined and waiting.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import traceback
from dataclasses import replace
from typing import Any, NoReturn

from attn_kata import sandbox
from attn_kata.attempt import blocked
from attn_kata.engine import memory
from attn_kata.engine.attempt_pool import AttemptPool, close
from attn_kata.engine.fork_worker import FaceStreams, serve_job
from attn_kata.engine.zygote import GraderZygote
from attn_kata.grading import processors
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job, Message

IDLE_SECONDS = 0.05


class ForkServer:
    """Forks two children per grading and passes the report on."""

    def __init__(self, *, requests: int, reports: int) -> None:
        self._requests, self._reports = requests, reports
        self._attempts = AttemptPool(self._non_attempt_children)
        self._grader: int | None = None
        self._last: Job | None = None  # the last job: the next one is probably for the same kata
        self._zygote: GraderZygote | None = None

    def serve(self) -> None:
        """Answer requests until the face is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sandbox.guard_engine()
        memory.keep_freed_memory()
        memory.freeze_loaded_objects()
        channel.send(self._reports, messages.Ready())
        while True:
            if not select.select([self._requests], [], [], IDLE_SECONDS)[0]:
                self._prepare_next_grading()
            try:
                asked = channel.receive(self._requests)
                if isinstance(asked, messages.Grade):
                    before, self._last = self._last, asked.job
                    if before is not None:  # in a batch the engine is never idle, but a zygote makes the batch quicker
                        self._prepare_zygote(asked.job)
                    self._grade(asked.job)
                # A Cancel may arrive when its grading has just ended. It is ignored.
            except channel.ChannelClosed:
                return

    def _prepare_next_grading(self) -> None:
        """Prepare the next grading while nobody waits. Errors are ignored: the next grading meets and reports them."""
        if self._last is None:
            return
        with contextlib.suppress(sandbox.IsolationError, OSError):
            self._prepare_zygote(self._last)
            self._attempts.prepare_spare(self._last)
        try:
            if self._zygote is not None:
                self._zygote.prepare(self._last)
        except channel.ChannelClosed:
            self._drop_zygote()

    def _prepare_zygote(self, job: Job) -> None:
        """Start a zygote for these katas, unless there is one. If it cannot be forked now, the grading works without it."""
        if self._zygote is not None and not self._zygote.serves(job):
            self._drop_zygote()
        if self._zygote is None:
            blocked.prepare()  # once here, and not in every attempt process
            with contextlib.suppress(OSError):
                self._zygote = GraderZygote(job, self._detach_zygote)

    def _start_from_zygote(
        self, stack: contextlib.ExitStack, job: Job, control: socket.socket, endpoints: Endpoints
    ) -> bool:
        """Have the zygote start the grader. Returns False if no zygote is ready for these katas."""
        zygote = self._zygote
        if zygote is None or not zygote.serves(job):
            return False
        try:
            if not zygote.is_ready():
                return False
            # The attempt process stays on this processor, and the grader uses another. Without a zygote, the system chooses.
            # In tier 2 the attempt runs in a further child, whose process id we do not have.
            processor = processors.this_processor() if job.tier < sandbox.JAIL else None
            if self._attempts.pid is not None:
                processors.stay_on(processor, self._attempts.pid)
            zygote.start(replace(job, processor=processor), control, endpoints)
        except channel.ChannelClosed:  # the zygote died; a grader that the engine forks will report why
            self._drop_zygote()
            return False
        stack.callback(self._end_grader_of, zygote)
        return True

    def _detach_zygote(self) -> FaceStreams:
        """Runs in the zygote: give up the engine's connections, and return those to the face, for the graders."""
        self._attempts.close_spare()
        return FaceStreams.taken_from(self._requests, self._reports)

    def _drop_zygote(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()
            self._attempts.end_strays()  # its grader has died with it, and is a child of the engine now

    def _grade(self, job: Job) -> None:
        message: Message | None
        try:
            with contextlib.ExitStack() as stack:
                ours, theirs = socket.socketpair()
                stack.callback(ours.close)
                stack.callback(theirs.close)
                stack.callback(self._end_grader_and_attempt)
                # The attempt process is forked first, so that it confines itself while the grader loads the kata.
                endpoints = self._attempts.start(job)
                try:
                    if not self._start_from_zygote(stack, job, theirs, endpoints):
                        self._start_grader(job, theirs, endpoints)
                finally:
                    theirs.close()
                    close(endpoints)
                message = self._serve_grader(ours, job)
        except (sandbox.IsolationError, OSError):
            message = messages.Fault(text=traceback.format_exc())
        if message is not None:
            channel.send(self._reports, message)

    def _serve_grader(self, control: socket.socket, job: Job) -> Message | None:
        """Serve the grader's requests. Return the message for the face, or None if the grader has sent the report."""
        watched: list[Any] = [control]
        while True:
            readable, _, _ = select.select(watched, [], [])
            if self._requests in readable:
                asked = channel.receive(self._requests)  # raises ChannelClosed when the face is gone
                if isinstance(asked, messages.Cancel):
                    return messages.Cancelled()
                raise ValueError(f"a {type(asked).__name__} while a grading runs")
            try:
                wanted = channel.receive(control.fileno())
                if isinstance(wanted, messages.SourceRead):  # from now on the face writes to the engine again
                    watched.append(self._requests)
                elif isinstance(wanted, messages.NewAttempt):
                    endpoints = self._attempts.start(job)
                    assert endpoints.output is not None
                    socket.send_fds(control, [b"F"], [endpoints.channel.fileno(), endpoints.output])
                    close(endpoints)
                elif isinstance(wanted, messages.EndAttempt):
                    how = self._attempts.end(patient=wanted.patient)
                    channel.send(control.fileno(), messages.AttemptEnded(how=how))
                elif isinstance(wanted, messages.GradingDone):
                    channel.send(control.fileno(), messages.SendReport())
                    _wait_until_sent(control)
                    return None
            except (channel.ChannelClosed, BrokenPipeError):
                if len(watched) == 1:
                    raise RuntimeError("the grader process ended while it read the source") from None
                return messages.Fault(text="the grader process ended without a report")

    # --------------------------------------------------------------------------------------------- the two children

    def _start_grader(self, job: Job, control: socket.socket, endpoints: Endpoints) -> None:
        engine = os.getpid()
        grader = os.fork()
        if grader == 0:
            self._run_grader(engine, job, control, endpoints)
        self._grader = grader

    def _end_grader_of(self, zygote: GraderZygote) -> None:
        try:
            zygote.end_grader()
        except channel.ChannelClosed:
            self._drop_zygote()

    def _end_grader_and_attempt(self) -> None:
        grader, self._grader = self._grader, None
        if grader is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(grader, signal.SIGKILL)
            os.waitpid(grader, 0)
        self._attempts.end()

    def _non_attempt_children(self) -> list[int]:
        zygote = None if self._zygote is None else self._zygote.pid
        return [pid for pid in (self._grader, zygote) if pid is not None]

    def _run_grader(self, engine: int, job: Job, control: socket.socket, endpoints: Endpoints) -> NoReturn:
        """Runs in a grader that has no zygote: load the kata, grade, exit."""
        try:
            sandbox.guard_engine(engine)
            gc.enable()
            serve_job(FaceStreams.taken_from(self._requests, self._reports), job, control, endpoints, None)
        except channel.ChannelClosed:
            pass  # the engine or the face is gone
        finally:
            os._exit(0)


def _wait_until_sent(control: socket.socket) -> None:
    """Wait until the grader has sent the report. If it dies halfway, the engine ends too, so that the face sees the end."""
    try:
        channel.receive(control.fileno())
    except channel.ChannelClosed:
        raise RuntimeError("the grader process ended in the middle of its report") from None
