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
import json
import os
import select
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from . import channel, isolation, system
from .attempts import Attempts, close
from .forked import serve_job
from .line import Lines
from .template import Template, key_of

if TYPE_CHECKING:
    from .grading import Loaded

IDLE_SECONDS = 0.05


class Engine:
    """Forks two children per grading and passes the report on."""

    def __init__(self, *, requests: int, reports: int) -> None:
        self._requests, self._reports = requests, reports
        self._attempts = Attempts(self._other_children)
        self._grader: int | None = None
        self._asked: dict[str, Any] | None = None  # the last grading: the next is likely of the same kata
        self._template: Template | None = None

    def serve(self) -> None:
        """Answer requests until the face is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        isolation.guard_engine()
        system.keep_freed_memory()
        system.share_what_is_loaded()
        channel.send(self._reports, b"REDY")
        while True:
            if not select.select([self._requests], [], [], IDLE_SECONDS)[0]:
                self._make_ready()
            try:
                kind, payload = channel.receive(self._requests)
                if kind == b"GRAD":
                    before, self._asked = self._asked, json.loads(payload)
                    if before is not None and key_of(before) == key_of(self._asked):
                        self._have_a_template(self._asked)  # many of one kata: they do not wait, and yet each is quicker
                    self._grade(self._asked)
                # STOP came after the grading that it meant had ended.
            except channel.ChannelClosed:
                return

    def _make_ready(self) -> None:
        """Use the time in which nobody waits. What goes wrong here goes wrong again, and is told, when it is needed."""
        _import_pytest()
        if self._asked is None:
            return
        with contextlib.suppress(isolation.IsolationError, OSError):
            self._have_a_template(self._asked)
            self._attempts.have_a_spare(self._asked)
        try:
            if self._template is not None:
                self._template.prepare()
        except channel.ChannelClosed:
            self._drop_template()

    def _have_a_template(self, asked: dict[str, Any]) -> None:
        """Have one of this kata. One that cannot be forked now is not missed."""
        if self._template is not None and self._template.key != key_of(asked):
            self._drop_template()
        if self._template is None:
            _import_pytest()
            with contextlib.suppress(OSError):
                self._template = Template(asked, self._become_template, self._serve_job)

    def _start_from_template(
        self, stack: contextlib.ExitStack, asked: dict[str, Any], control: socket.socket, lines: Lines
    ) -> bool:
        """Have the template fork the grader child, where there is one that has this kata loaded."""
        template = self._template
        if template is None or template.key != key_of(asked):
            return False
        try:
            if not template.is_ready():
                return False
            # The attempt child stays here, the grader child beside it. One that has yet to load its kata chooses for itself.
            processor = system.this_processor() if asked["tier"] < isolation.JAIL else None  # its child is another's child
            if self._attempts.pid is not None:
                system.stay_on(processor, self._attempts.pid)
            template.start({**asked, "processor": processor}, control, lines)
        except channel.ChannelClosed:  # it fell over; a grader child of our own will say why
            self._drop_template()
            return False
        stack.callback(self._end_child_of, template)
        return True

    def _become_template(self) -> None:
        """In a template's process: what is printed goes to the log, and nothing but a report reaches the face."""
        printed, self._reports = self._reports, os.dup(self._reports)
        os.dup2(2, printed)
        self._attempts.let_go()

    def _drop_template(self) -> None:
        template, self._template = self._template, None
        if template is not None:
            template.close()

    def _grade(self, asked: dict[str, Any]) -> None:
        told: tuple[bytes, bytes] | None
        try:
            with contextlib.ExitStack() as stack:
                ours, theirs = socket.socketpair()
                stack.callback(ours.close)
                stack.callback(theirs.close)
                stack.callback(self._end_both)
                # The attempt child is forked first, so that it confines itself while the grader loads the kata.
                lines = self._attempts.start(asked)
                try:
                    if not self._start_from_template(stack, asked, theirs, lines):
                        self._start_grader(asked, theirs, lines)
                finally:
                    theirs.close()
                    close(lines)
                told = self._follow(ours, asked)
        except (isolation.IsolationError, OSError):
            told = b"FALT", traceback.format_exc().encode()
        if told is not None:
            channel.send(self._reports, *told)

    def _follow(self, control: socket.socket, asked: dict[str, Any]) -> tuple[bytes, bytes] | None:
        """Serve the grader's requests; what to tell the face when it is done, None where the grader has told it."""
        watched: list[Any] = [control]
        to_come = 2 if asked["unaided"] else 0  # processes of a second look, after the one that is there
        while True:
            readable, _, _ = select.select(watched, [], [])
            if self._requests in readable:
                kind, _ = channel.receive(self._requests)  # raises ChannelClosed when the face is gone
                if kind == b"STOP":
                    return b"STPD", b""
                raise ValueError(f"a request {kind!r} while a grading runs")
            try:
                kind, how = channel.receive(control.fileno())
                if kind == b"READ":  # it has the source: what comes from the face now is for us again
                    watched.append(self._requests)
                    to_come -= self._have_one_more(asked, to_come)
                elif kind == b"NEXT":
                    lines = self._attempts.start(asked)
                    assert lines.output is not None
                    socket.send_fds(control, [b"F"], [lines.channel.fileno(), lines.output])
                    close(lines)
                    to_come -= self._have_one_more(asked, to_come)
                elif kind == b"KILL":
                    channel.send(control.fileno(), b"DEAD", self._attempts.end(patient=bool(how)).encode())
                elif kind == b"DONE":
                    channel.send(control.fileno(), b"TELL")
                    _told_by_itself(control)
                    return None
            except (channel.ChannelClosed, BrokenPipeError):
                if len(watched) == 1:
                    raise RuntimeError("the grader's own process ended while it read the source") from None
                return b"FALT", b"the grader's own process ended without a report"

    def _have_one_more(self, asked: dict[str, Any], to_come: int) -> bool:
        """Fork the next of those `to_come`, if any. What does not pass leaves it to the next grading."""
        with contextlib.suppress(isolation.IsolationError, OSError):
            if to_come:
                self._attempts.have_a_spare(asked, warm=to_come > 1)
                return True
        return False

    # --------------------------------------------------------------------------------------------- the two children

    def _start_grader(self, asked: dict[str, Any], control: socket.socket, lines: Lines) -> None:
        engine = os.getpid()
        grader = os.fork()
        if grader == 0:
            self._be_grader(engine, asked, control, lines)
        self._grader = grader

    def _end_child_of(self, template: Template) -> None:
        try:
            template.end_child()
        except channel.ChannelClosed:
            self._drop_template()

    def _end_both(self) -> None:
        grader, self._grader = self._grader, None
        if grader is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(grader, signal.SIGKILL)
            os.waitpid(grader, 0)
        self._attempts.end()

    def _other_children(self) -> list[int]:
        template = None if self._template is None else self._template.pid
        return [pid for pid in (self._grader, template) if pid is not None]

    def _be_grader(self, engine: int, asked: dict[str, Any], control: socket.socket, lines: Lines) -> NoReturn:
        """The grader child where there is no template: only here are katas and solutions loaded."""
        try:
            isolation.guard_engine(engine)
            gc.enable()
            self._serve_job(asked, control, lines, None)
        finally:
            os._exit(0)

    def _serve_job(self, asked: dict[str, Any], control: socket.socket, lines: Lines, loaded: Loaded | None) -> NoReturn:
        serve_job(self._requests, self._reports, asked, control, lines, loaded)


def _import_pytest() -> None:
    """Every grader child needs it, and no attempt has a use for it."""
    if "pytest" not in sys.modules:
        import pytest  # noqa: F401

        system.share_what_is_loaded()


def _told_by_itself(control: socket.socket) -> None:
    """Wait until the grader has told the face. Half a message is no message: then the face is to see an end."""
    try:
        channel.receive(control.fileno())
    except channel.ChannelClosed:
        raise RuntimeError("the grader's own process ended in the middle of its report") from None
