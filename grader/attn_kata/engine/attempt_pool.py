"""The attempt processes of a forking engine: the one that is graded, and a spare that is confined and waits."""

from __future__ import annotations

import os
import select
import shutil
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from attn_kata import sandbox
from attn_kata.attempt import child, executor
from attn_kata.attempt.prewarm import prewarm
from attn_kata.engine import exit_status
from attn_kata.grading.attempt_process import Lines
from attn_kata.protocol.messages import Job

del executor  # imported here so that the children find it loaded

CPU_SECONDS = 120
MEMORY = 2 << 30
FILES = 1 << 20
PATIENCE_SECONDS = 0.25  # for a child that is dying by itself, to tell a crash from our kill: a busy machine takes its time
_ROUNDS = 125  # of looking whether it has


@dataclass(frozen=True, kw_only=True)
class _PooledProcess:
    """An attempt child: its process, its folder, the grader's ends of its lines, and what it was confined by."""

    pid: int
    folder: str
    lines: Lines
    prepared: sandbox.Prepared


class AttemptPool:
    """Forks attempt children and ends them. `others` are the engine's children that are none of them."""

    def __init__(self, others: Callable[[], list[int]]) -> None:
        self._others = others
        self._prepared: dict[tuple[int, tuple[str, ...]], sandbox.Prepared] = {}
        self._graded: _PooledProcess | None = None
        self._spare: _PooledProcess | None = None

    @property
    def pid(self) -> int | None:
        """The process that is graded."""
        return None if self._graded is None else self._graded.pid

    def start(self, job: Job) -> Lines:
        """The lines of a new attempt child: of the one that waits, where it is confined as it should be."""
        self.end()
        waiting, self._spare = self._spare, None
        if waiting is not None and (waiting.prepared is not self._prepare(job) or _has_ended(waiting.pid)):
            close(waiting.lines)
            self._end(waiting)
            waiting = None
        self._graded = waiting or self._fork(job)
        return self._graded.lines

    def prepare_spare(self, job: Job) -> None:
        """Have a process wait for a grading like this one."""
        if self._spare is None:
            self._spare = self._fork(job, meanwhile=prewarm)

    def close_spare(self) -> None:
        """In another process than the engine: close what belongs to the one that waits."""
        if self._spare is not None:
            close(self._spare.lines)

    def end(self, *, patient: bool = False) -> str:
        """Kill the one that is graded and whatever it left; how it had ended by itself, in words, or "".

        A child whose socket closed may be about to die of what closed it: being patient tells a crash from our kill.
        """
        graded, self._graded = self._graded, None
        return "" if graded is None else self._end(graded, patient=patient)

    def _end(self, attempt: _PooledProcess, *, patient: bool = False) -> str:
        rounds = _ROUNDS if patient else 1
        by_itself = False
        for left in reversed(range(rounds)):
            by_itself = _has_ended(attempt.pid)
            if by_itself:
                break
            if left:
                select.select([], [], [], PATIENCE_SECONDS / rounds)
        status = sandbox.end(attempt.pid)
        spare = [] if self._spare is None else [self._spare.pid]
        sandbox.end_strays((*self._others(), *spare))
        shutil.rmtree(attempt.folder, ignore_errors=True)
        return exit_status.describe(os.waitstatus_to_exitcode(status)) if by_itself else ""

    def _prepare(self, job: Job) -> sandbox.Prepared:
        """What children of this tier inherit; made anew when a package was installed since."""
        tier, denied = job.tier, job.denied
        prepared = self._prepared.pop((tier, denied), None)
        if prepared is not None and not sandbox.is_current(prepared):
            sandbox.release(prepared)
            prepared = None
        if prepared is None:
            prepared = sandbox.prepare(tier=tier, denied=denied)
        self._prepared[tier, denied] = prepared
        return prepared

    def _fork(self, job: Job, meanwhile: Callable[[], None] = lambda: None) -> _PooledProcess:
        prepared = self._prepare(job)
        folder = tempfile.mkdtemp(prefix="attempt-", dir=os.getcwd())
        ours, theirs = socket.socketpair()
        output, printing = os.pipe()
        plan = sandbox.Plan(
            tier=job.tier,
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
                child.run(line, printing, lambda: sandbox.confine(plan, prepared), meanwhile)
        except OSError:
            close(lines)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            theirs.close()
            os.close(printing)
        return _PooledProcess(pid=pid, folder=folder, lines=lines, prepared=prepared)


def close(lines: Lines) -> None:
    """Let go of lines that now are another process's."""
    lines.channel.close()
    if lines.output is not None:
        os.close(lines.output)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
