"""The engine where fork is to be had: one loop over the face's requests and the grader child's.

The grader child asks for attempt processes over a socket of its own; they are forked from here, where no answer was ever
loaded, and never from the grader. For the same reason the grader child itself reads the source from the face and writes the
report to it: what passed through this process would lie in the memory of the attempts to come, to be found by whoever looks.

When nobody waits after a grading, or a kata comes twice, the next one is made ready: a template process that has the kata
loaded, from which grader children are forked from then on, and one attempt child, confined and waiting.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from attn_kata import sandbox
from attn_kata.engine import memory
from attn_kata.engine.attempt_pool import AttemptPool, close
from attn_kata.engine.fork_worker import serve_job
from attn_kata.engine.zygote import GraderZygote, key_of
from attn_kata.grading import processors
from attn_kata.grading.attempt_process import Lines
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job, Message

if TYPE_CHECKING:
    from attn_kata.grading.grade import Loaded

IDLE_SECONDS = 0.05


class ForkServer:
    """Forks two children per grading and passes the report on."""

    def __init__(self, *, requests: int, reports: int) -> None:
        self._requests, self._reports = requests, reports
        self._attempts = AttemptPool(self._other_children)
        self._grader: int | None = None
        self._last: Job | None = None  # the last grading: the next is likely of the same kata
        self._zygote: GraderZygote | None = None

    def serve(self) -> None:
        """Answer requests until the face is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sandbox.guard_engine()
        memory.keep_freed_memory()
        memory.share_what_is_loaded()
        channel.send(self._reports, messages.Ready())
        while True:
            if not select.select([self._requests], [], [], IDLE_SECONDS)[0]:
                self._make_ready()
            try:
                asked = channel.receive(self._requests)
                if isinstance(asked, messages.Grade):
                    before, self._last = self._last, asked.job
                    if before is not None and key_of(before) == key_of(asked.job):
                        self._prepare_zygote(asked.job)  # many of one kata: they do not wait, and yet each is quicker
                    self._grade(asked.job)
                # A Cancel came after the grading that it meant had ended.
            except channel.ChannelClosed:
                return

    def _make_ready(self) -> None:
        """Use the time in which nobody waits. What goes wrong here goes wrong again, and is told, when it is needed."""
        _import_pytest()
        if self._last is None:
            return
        with contextlib.suppress(sandbox.IsolationError, OSError):
            self._prepare_zygote(self._last)
            self._attempts.prepare_spare(self._last)
        try:
            if self._zygote is not None:
                self._zygote.prepare()
        except channel.ChannelClosed:
            self._drop_zygote()

    def _prepare_zygote(self, job: Job) -> None:
        """Have one of this kata. One that cannot be forked now is not missed."""
        if self._zygote is not None and self._zygote.key != key_of(job):
            self._drop_zygote()
        if self._zygote is None:
            _import_pytest()
            with contextlib.suppress(OSError):
                self._zygote = GraderZygote(job, self._become_zygote, self._serve_job)

    def _start_from_zygote(
        self, stack: contextlib.ExitStack, job: Job, control: socket.socket, lines: Lines
    ) -> bool:
        """Have the template fork the grader child, where there is one that has this kata loaded."""
        zygote = self._zygote
        if zygote is None or zygote.key != key_of(job):
            return False
        try:
            if not zygote.is_ready():
                return False
            # The attempt child stays here, the grader child beside it. One that has yet to load its kata chooses for itself.
            processor = processors.this_processor() if job.tier < sandbox.JAIL else None  # its child is another's child
            if self._attempts.pid is not None:
                processors.stay_on(processor, self._attempts.pid)
            zygote.start(replace(job, processor=processor), control, lines)
        except channel.ChannelClosed:  # it fell over; a grader child of our own will say why
            self._drop_zygote()
            return False
        stack.callback(self._end_child_of, zygote)
        return True

    def _become_zygote(self) -> None:
        """In a template's process: what is printed goes to the log, and nothing but a report reaches the face."""
        printed, self._reports = self._reports, os.dup(self._reports)
        os.dup2(2, printed)
        self._attempts.close_spare()

    def _drop_zygote(self) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is not None:
            zygote.close()

    def _grade(self, job: Job) -> None:
        told: Message | None
        try:
            with contextlib.ExitStack() as stack:
                ours, theirs = socket.socketpair()
                stack.callback(ours.close)
                stack.callback(theirs.close)
                stack.callback(self._end_both)
                # The attempt process is forked first, so that it confines itself while the grader loads the kata.
                lines = self._attempts.start(job)
                try:
                    if not self._start_from_zygote(stack, job, theirs, lines):
                        self._start_grader(job, theirs, lines)
                finally:
                    theirs.close()
                    close(lines)
                told = self._follow(ours, job)
        except (sandbox.IsolationError, OSError):
            told = messages.Fault(text=traceback.format_exc())
        if told is not None:
            channel.send(self._reports, told)

    def _follow(self, control: socket.socket, job: Job) -> Message | None:
        """Serve the grader's requests; what to tell the face when it is done, None where the grader has told it."""
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
                if isinstance(wanted, messages.SourceRead):  # what comes from the face now is for the engine again
                    watched.append(self._requests)
                elif isinstance(wanted, messages.NewAttempt):
                    lines = self._attempts.start(job)
                    assert lines.output is not None
                    socket.send_fds(control, [b"F"], [lines.channel.fileno(), lines.output])
                    close(lines)
                elif isinstance(wanted, messages.EndAttempt):
                    how = self._attempts.end(patient=wanted.patient)
                    channel.send(control.fileno(), messages.AttemptEnded(how=how))
                elif isinstance(wanted, messages.GradingDone):
                    channel.send(control.fileno(), messages.SendReport())
                    _wait_until_sent(control)
                    return None
            except (channel.ChannelClosed, BrokenPipeError):
                if len(watched) == 1:
                    raise RuntimeError("the grader's own process ended while it read the source") from None
                return messages.Fault(text="the grader's own process ended without a report")

    # --------------------------------------------------------------------------------------------- the two children

    def _start_grader(self, job: Job, control: socket.socket, lines: Lines) -> None:
        engine = os.getpid()
        grader = os.fork()
        if grader == 0:
            self._be_grader(engine, job, control, lines)
        self._grader = grader

    def _end_child_of(self, zygote: GraderZygote) -> None:
        try:
            zygote.end_child()
        except channel.ChannelClosed:
            self._drop_zygote()

    def _end_both(self) -> None:
        grader, self._grader = self._grader, None
        if grader is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(grader, signal.SIGKILL)
            os.waitpid(grader, 0)
        self._attempts.end()

    def _other_children(self) -> list[int]:
        zygote = None if self._zygote is None else self._zygote.pid
        return [pid for pid in (self._grader, zygote) if pid is not None]

    def _be_grader(self, engine: int, job: Job, control: socket.socket, lines: Lines) -> NoReturn:
        """The grader child where there is no template: only here are katas and solutions loaded."""
        try:
            sandbox.guard_engine(engine)
            gc.enable()
            self._serve_job(job, control, lines, None)
        finally:
            os._exit(0)

    def _serve_job(self, job: Job, control: socket.socket, lines: Lines, loaded: Loaded | None) -> NoReturn:
        serve_job(self._requests, self._reports, job, control, lines, loaded)


def _import_pytest() -> None:
    """Every grader child needs it, and no attempt has a use for it."""
    if "pytest" not in sys.modules:
        import pytest  # noqa: F401

        memory.share_what_is_loaded()


def _wait_until_sent(control: socket.socket) -> None:
    """Wait until the grader has told the face. Half a message is no message: then the face is to see an end."""
    try:
        channel.receive(control.fileno())
    except channel.ChannelClosed:
        raise RuntimeError("the grader's own process ended in the middle of its report") from None
