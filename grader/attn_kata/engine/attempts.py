"""The attempt children of a forking engine: the one that is graded, and one that stands ready, confined and waiting."""

from __future__ import annotations

import os
import select
import shutil
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import child, ending, executor, isolation
from .line import Lines
from .warmup import warm_up

del executor  # imported here so that the children find it loaded

CPU_SECONDS = 120
MEMORY = 2 << 30
FILES = 1 << 20
PATIENCE_SECONDS = 0.25  # for a child that is dying by itself, to tell a crash from our kill: a busy machine takes its time
_ROUNDS = 125  # of looking whether it has


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """An attempt child: its process, its folder, the grader's ends of its lines, and what it was confined by."""

    pid: int
    folder: str
    lines: Lines
    prepared: isolation.Prepared


class Attempts:
    """Forks attempt children and ends them. `others` are the engine's children that are none of them."""

    def __init__(self, others: Callable[[], list[int]]) -> None:
        self._others = others
        self._prepared: dict[tuple[int, tuple[str, ...]], isolation.Prepared] = {}
        self._graded: _Attempt | None = None
        self._spare: _Attempt | None = None

    @property
    def pid(self) -> int | None:
        """The process that is graded."""
        return None if self._graded is None else self._graded.pid

    def start(self, asked: dict[str, Any]) -> Lines:
        """The lines of a new attempt child: of the one that waits, where it is confined as it should be."""
        self.end()
        waiting, self._spare = self._spare, None
        if waiting is not None and (waiting.prepared is not self._prepare(asked) or _has_ended(waiting.pid)):
            close(waiting.lines)
            self._end(waiting)
            waiting = None
        self._graded = waiting or self._fork(asked)
        return self._graded.lines

    def have_a_spare(self, asked: dict[str, Any], *, warm: bool = True) -> None:
        """Have one wait for a grading like this; where it is to carry out traces alone, it need not be warm."""
        if self._spare is None:
            self._spare = self._fork(asked, meanwhile=warm_up if warm else lambda: None)

    def let_go(self) -> None:
        """In another process than the engine: close what belongs to the one that waits."""
        if self._spare is not None:
            close(self._spare.lines)

    def end(self, *, patient: bool = False) -> str:
        """Kill the one that is graded and whatever it left; how it had ended by itself, in words, or "".

        A child whose socket closed may be about to die of what closed it: being patient tells a crash from our kill.
        """
        graded, self._graded = self._graded, None
        return "" if graded is None else self._end(graded, patient=patient)

    def _end(self, attempt: _Attempt, *, patient: bool = False) -> str:
        rounds = _ROUNDS if patient else 1
        by_itself = False
        for left in reversed(range(rounds)):
            by_itself = _has_ended(attempt.pid)
            if by_itself:
                break
            if left:
                select.select([], [], [], PATIENCE_SECONDS / rounds)
        status = isolation.end(attempt.pid)
        spare = [] if self._spare is None else [self._spare.pid]
        isolation.end_strays((*self._others(), *spare))
        shutil.rmtree(attempt.folder, ignore_errors=True)
        return ending.in_words(os.waitstatus_to_exitcode(status)) if by_itself else ""

    def _prepare(self, asked: dict[str, Any]) -> isolation.Prepared:
        """What children of this tier inherit; made anew when a package was installed since."""
        tier, denied = asked["tier"], tuple(asked["denied"])
        prepared = self._prepared.pop((tier, denied), None)
        if prepared is not None and not isolation.is_current(prepared):
            isolation.release(prepared)
            prepared = None
        if prepared is None:
            prepared = isolation.prepare(tier=tier, denied=denied)
        self._prepared[tier, denied] = prepared
        return prepared

    def _fork(self, asked: dict[str, Any], meanwhile: Callable[[], None] = lambda: None) -> _Attempt:
        prepared = self._prepare(asked)
        folder = tempfile.mkdtemp(prefix="attempt-", dir=os.getcwd())
        ours, theirs = socket.socketpair()
        output, printing = os.pipe()
        plan = isolation.Plan(
            tier=asked["tier"],
            keep_descriptors=(theirs.fileno(),),
            folder=folder,
            cpu_seconds=CPU_SECONDS,
            memory_bytes=MEMORY,
            file_bytes=FILES,
            parent_pid=os.getpid(),
        )
        lines = Lines(channel=ours, output=output)
        try:
            pid = os.fork()
            if pid == 0:
                line = child.DescriptorLine(theirs.fileno())
                child.run(line, printing, lambda: isolation.confine(plan, prepared), meanwhile)
        except OSError:
            close(lines)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            theirs.close()
            os.close(printing)
        return _Attempt(pid=pid, folder=folder, lines=lines, prepared=prepared)


def close(lines: Lines) -> None:
    """Let go of lines that now are another process's."""
    lines.channel.close()
    if lines.output is not None:
        os.close(lines.output)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
