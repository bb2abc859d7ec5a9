"""The engine where fork is to be had: one loop over the face's requests and the grader child's.

The grader child asks for attempt processes over a socket of its own; they are forked from here, where no answer was ever
loaded, and never from the grader. For the same reason the grader child itself reads the source from the face and writes the
report to it: what passed through this process would lie in the memory of the attempts to come, to be found by whoever looks.

When nobody waits after a grading, the next one is made ready: a template process that has the kata loaded, from which grader
children are forked from then on, and one attempt child, confined and waiting.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from . import channel, child, ending, executor, isolation
from .remote import ConfinementFailed, Ended, Lines, TooWeak
from .template import Template, key_of
from .warmup import warm_up

if TYPE_CHECKING:
    from .grading import Loaded

del executor  # imported here so that the children find it loaded

ATTEMPT_CPU_SECONDS = 120
ATTEMPT_MEMORY = 2 << 30
ATTEMPT_FILES = 1 << 20
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
LARGE = 32 << 20  # bytes; glibc's limit for the second
IDLE_SECONDS = 0.05
PATIENCE_SECONDS = 0.05  # for a child that is dying by itself, to tell a crash from our kill


@dataclass(frozen=True, kw_only=True)
class _Started:
    """An attempt child: its process, its folder, the grader's ends of its lines, and what it was confined by."""

    pid: int
    folder: str
    lines: Lines
    prepared: isolation.Prepared


class Engine:
    """Forks two children per grading and passes the report on."""

    def __init__(self, *, requests: int, reports: int) -> None:
        self._requests, self._reports = requests, reports
        self._attempt: int | None = None
        self._grader: int | None = None
        self._folder: str | None = None
        self._prepared: dict[tuple[int, tuple[str, ...]], isolation.Prepared] = {}
        self._asked: dict[str, Any] | None = None  # the last grading: the next is likely of the same kata
        self._template: Template | None = None
        self._spare: _Started | None = None

    def serve(self) -> None:
        """Answer requests until the face is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        isolation.guard_engine()
        _keep_freed_memory()
        _share_what_is_loaded()
        channel.send(self._reports, b"REDY")
        while True:
            if not select.select([self._requests], [], [], IDLE_SECONDS)[0]:
                self._make_ready()
            try:
                kind, payload = channel.receive(self._requests)
                if kind == b"GRAD":
                    self._asked = json.loads(payload)
                    self._grade(self._asked)
                # STOP came after the grading that it meant had ended.
            except channel.ChannelClosed:
                return

    def _make_ready(self) -> None:
        """Use the time in which nobody waits. What goes wrong here goes wrong again, and is told, when it is needed."""
        if "pytest" not in sys.modules:
            import pytest  # noqa: F401 - every grader child needs it, and no attempt has a use for it

            _share_what_is_loaded()
        if self._asked is None:
            return
        with contextlib.suppress(isolation.IsolationError, OSError):
            if self._template is not None and self._template.key != key_of(self._asked):
                self._drop_template()
            if self._template is None:
                self._template = Template(self._asked, self._become_template, self._serve_job)
            self._prepare_template(self._template)
            self._have_a_spare(self._asked)

    def _have_a_spare(self, asked: dict[str, Any]) -> None:
        if self._spare is None:
            self._spare = self._fork_attempt(asked, meanwhile=warm_up)

    def _prepare_template(self, template: Template) -> None:
        try:
            template.prepare()
        except channel.ChannelClosed:
            self._drop_template()

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
            template.start(asked, control, lines)
        except channel.ChannelClosed:  # it fell over; a grader child of our own will say why
            self._drop_template()
            return False
        stack.callback(self._end_child_of, template)
        return True

    def _become_template(self) -> None:
        """In a template's process: what is printed goes to the log, and nothing but a report reaches the face."""
        printed, self._reports = self._reports, os.dup(self._reports)
        os.dup2(2, printed)
        if self._spare is not None:
            _close(self._spare.lines)

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
                lines = self._start_attempt(asked)
                try:
                    if not self._start_from_template(stack, asked, theirs, lines):
                        self._start_grader(asked, theirs, lines)
                finally:
                    theirs.close()
                    _close(lines)
                told = self._follow(ours, asked)
        except (isolation.IsolationError, OSError):
            told = b"FALT", traceback.format_exc().encode()
        if told is not None:
            channel.send(self._reports, *told)

    def _follow(self, control: socket.socket, asked: dict[str, Any]) -> tuple[bytes, bytes] | None:
        """Serve the grader's requests; what to tell the face when it is done, None where the grader has told it."""
        watched: list[Any] = [control]
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
                    # What passes is asked again in another process; what does not leaves this one to the next grading.
                    with contextlib.suppress(isolation.IsolationError, OSError):
                        if asked["unaided"]:
                            self._have_a_spare(asked)
                elif kind == b"NEXT":
                    lines = self._start_attempt(asked)
                    assert lines.output is not None
                    socket.send_fds(control, [b"F"], [lines.channel.fileno(), lines.output])
                    _close(lines)
                elif kind == b"KILL":
                    channel.send(control.fileno(), b"DEAD", self._end_attempt(patient=bool(how)).encode())
                elif kind == b"DONE":
                    channel.send(control.fileno(), b"TELL")
                    _told_by_itself(control)
                    return None
            except (channel.ChannelClosed, BrokenPipeError):
                if len(watched) == 1:
                    raise RuntimeError("the grader's own process ended while it read the source") from None
                return b"FALT", b"the grader's own process ended without a report"

    # --------------------------------------------------------------------------------------------- the two children

    def _prepare(self, tier: int, denied: tuple[str, ...]) -> isolation.Prepared:
        """What children of this tier inherit; made anew when a package was installed since."""
        prepared = self._prepared.pop((tier, denied), None)
        if prepared is not None and not isolation.is_current(prepared):
            isolation.release(prepared)
            prepared = None
        if prepared is None:
            prepared = isolation.prepare(tier=tier, denied=denied)
        self._prepared[tier, denied] = prepared
        return prepared

    def _start_attempt(self, asked: dict[str, Any]) -> Lines:
        """The lines of a new attempt child: of the one that waits, where it is confined as it should be."""
        self._end_attempt()
        started, self._spare = self._spare, None
        if started is not None:
            prepared = self._prepare(asked["tier"], tuple(asked["denied"]))
            if started.prepared is not prepared or _has_ended(started.pid):
                self._end(started)
                started = None
        if started is None:
            started = self._fork_attempt(asked)
        self._attempt, self._folder = started.pid, started.folder
        return started.lines

    def _fork_attempt(self, asked: dict[str, Any], meanwhile: Callable[[], None] = lambda: None) -> _Started:
        tier = asked["tier"]
        prepared = self._prepare(tier, tuple(asked["denied"]))
        folder = tempfile.mkdtemp(prefix="attempt-", dir=os.getcwd())
        ours, theirs = socket.socketpair()
        output, printing = os.pipe()
        plan = isolation.Plan(
            tier=tier,
            keep_descriptors=(theirs.fileno(),),
            folder=folder,
            cpu_seconds=ATTEMPT_CPU_SECONDS,
            memory_bytes=ATTEMPT_MEMORY,
            file_bytes=ATTEMPT_FILES,
            parent_pid=os.getpid(),
        )
        lines = Lines(channel=ours, output=output)
        try:
            pid = os.fork()
            if pid == 0:
                line = child.DescriptorLine(theirs.fileno())
                child.run(line, printing, lambda: isolation.confine(plan, prepared), meanwhile)
        except OSError:
            _close(lines)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            theirs.close()
            os.close(printing)
        return _Started(pid=pid, folder=folder, lines=lines, prepared=prepared)

    def _end(self, started: _Started) -> None:
        """End an attempt child that was never used."""
        _close(started.lines)
        isolation.end(started.pid)
        isolation.end_strays(self._known())
        shutil.rmtree(started.folder, ignore_errors=True)

    def _known(self) -> tuple[int, ...]:
        """The children that are no strays, but for the attempt child."""
        template = None if self._template is None else self._template.pid
        spare = None if self._spare is None else self._spare.pid
        return tuple(pid for pid in (self._grader, template, spare) if pid is not None)

    def _end_attempt(self, *, patient: bool = False) -> str:
        """Kill the attempt child and whatever it left; how it had ended by itself, in words, or "".

        A child whose socket closed may be about to die of what closed it: being patient tells a crash from our kill.
        """
        how = ""
        if self._attempt is not None:
            how = _ended(self._attempt, patient, self._known())
            self._attempt = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        return how

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
        self._end_attempt()

    def _be_grader(self, engine: int, asked: dict[str, Any], control: socket.socket, lines: Lines) -> NoReturn:
        """The grader child where there is no template: only here are katas and solutions loaded."""
        try:
            isolation.guard_engine(engine)
            gc.enable()
            self._serve_job(asked, control, lines, None)
        finally:
            os._exit(0)

    def _serve_job(self, asked: dict[str, Any], control: socket.socket, lines: Lines, loaded: Loaded | None) -> NoReturn:
        """One grading, in a grader child: the source from the face, the report to it."""
        try:
            _, source = channel.receive(self._requests)
            channel.send(control.fileno(), b"READ")
            reports = os.dup(self._reports)
            nowhere = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nowhere, self._requests)
            os.close(nowhere)
            os.dup2(2, self._reports)  # what pytest prints goes to the log, not between the reports
            kind, payload = _graded(asked, source, ForkedSupply(control, lines), loaded)
            channel.send(control.fileno(), b"DONE")
            channel.receive(control.fileno())  # TELL: from here on it is not cancelled in the middle of a message
            channel.send(reports, kind, payload)
            channel.send(control.fileno(), b"TOLD")
        except channel.ChannelClosed:
            pass  # the engine or the face is gone
        finally:
            os._exit(0)


def _graded(
    asked: dict[str, Any], source: bytes, supply: ForkedSupply, loaded: Loaded | None
) -> tuple[bytes, bytes]:
    """What to tell the face: the report, or the fault."""
    try:
        from .grading import grade

        return b"REPT", json.dumps(grade(asked, source, supply, loaded).to_dict()).encode()
    except TooWeak as error:
        return b"WEAK", json.dumps(error.notes).encode()
    except ConfinementFailed as error:
        return b"FALT", str(error).encode()
    except BaseException:
        return b"FALT", traceback.format_exc().encode("utf-8", "replace")


def _told_by_itself(control: socket.socket) -> None:
    """Wait until the grader has told the face. Half a message is no message: then the face is to see an end."""
    try:
        channel.receive(control.fileno())
    except channel.ChannelClosed:
        raise RuntimeError("the grader's own process ended in the middle of its report") from None


class ForkedSupply:
    """The grader child's way to attempt processes: the engine forks them and passes their lines."""

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

    def end(self, *, patient: bool) -> Ended:
        channel.send(self._control.fileno(), b"KILL", b"patiently" if patient else b"")
        return Ended(how=channel.receive(self._control.fileno())[1].decode())


def _share_what_is_loaded() -> None:
    """Share it with every child to come: a collection there would copy its pages."""
    gc.collect()
    gc.freeze()


def _keep_freed_memory() -> None:
    """Have glibc keep what the children to come free, for what they allocate next: every page that a process gets anew takes
    microseconds, and a tensor of 130 by 130 numbers would be given back and got again at every operation.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's own; other C libraries have none
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE)
        mallopt(M_TRIM_THRESHOLD, 2 * LARGE)


def _close(lines: Lines) -> None:
    """Let go of lines that now are another process's."""
    lines.channel.close()
    if lines.output is not None:
        os.close(lines.output)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _ended(pid: int, patient: bool, known: tuple[int, ...]) -> str:
    """End a child and whatever it left; how it had ended before that, in words, or ""."""
    rounds = 25 if patient else 1
    by_itself = False
    for left in reversed(range(rounds)):
        by_itself = _has_ended(pid)
        if by_itself:
            break
        if left:
            select.select([], [], [], PATIENCE_SECONDS / rounds)
    status = isolation.end(pid)
    isolation.end_strays(known)
    return ending.in_words(os.waitstatus_to_exitcode(status)) if by_itself else ""
