"""The attempt processes of a forking engine: the current one, and a spare that is confined and waits."""

from __future__ import annotations

import os
import select
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from attn_kata import sandbox
from attn_kata.attempt import child, executor
from attn_kata.attempt.prewarm import prewarm
from attn_kata.engine import exit_status
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.protocol.messages import Job

del executor  # it is imported here so that the children inherit it

CPU_SECONDS = 120
MEMORY = 2 << 30
FILES = 1 << 20
GRACE_SECONDS = 0.25  # a crashing child gets this long to end by itself, so that a crash is not mistaken for our kill
_POLLS = 125  # how often we look, within that time, whether it has ended


@dataclass(frozen=True, kw_only=True)
class _PooledProcess:
    """An attempt process: its id, its folder, the grader's ends of its connection, and what confines it."""

    pid: int
    folder: str
    endpoints: Endpoints
    prepared: sandbox.Prepared


class AttemptPool:
    """Forks attempt processes and ends them. `others` lists the engine's other children, which must not be killed."""

    def __init__(self, others: Callable[[], list[int]]) -> None:
        self._others = others
        self._prepared: dict[tuple[int, tuple[str, ...]], sandbox.Prepared] = {}
        self._graded: _PooledProcess | None = None
        self._spare: _PooledProcess | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process that is graded now."""
        return None if self._graded is None else self._graded.pid

    def start(self, job: Job) -> Endpoints:
        """Start an attempt process and return its connection. Use the spare if it is alive and confined as the job asks."""
        self.end()
        waiting, self._spare = self._spare, None
        if waiting is not None and (waiting.prepared is not self._prepare(job) or _has_ended(waiting.pid)):
            close(waiting.endpoints)
            self._end(waiting)
            waiting = None
        self._graded = waiting or self._fork(job)
        return self._graded.endpoints

    def prepare_spare(self, job: Job) -> None:
        """Fork a spare process for a grading like this one."""
        if self._spare is None:
            self._spare = self._fork(job, once_confined=prewarm)

    def close_spare(self) -> None:
        """Close the connection of the spare. For a forked process that is not the engine."""
        if self._spare is not None:
            close(self._spare.endpoints)

    def end(self, *, patient: bool = False) -> str:
        """Kill the current process and every process that it left. Return how it ended by itself, in words, or "".

        A child whose socket closed may be crashing. With `patient` it gets a moment to end, so that a crash is reported as one.
        """
        graded, self._graded = self._graded, None
        return "" if graded is None else self._end(graded, patient=patient)

    def end_strays(self) -> None:
        """Kill and reap the engine's children that nobody knows: what an attempt left, and the grader of a dropped zygote."""
        own = [process.pid for process in (self._graded, self._spare) if process is not None]
        sandbox.end_strays((*self._others(), *own))

    def _end(self, attempt: _PooledProcess, *, patient: bool = False) -> str:
        polls = _POLLS if patient else 1
        by_itself = False
        for left in reversed(range(polls)):
            by_itself = _has_ended(attempt.pid)
            if by_itself:
                break
            if left:
                select.select([], [], [], GRACE_SECONDS / polls)
        status = sandbox.end(attempt.pid)
        self.end_strays()
        shutil.rmtree(attempt.folder, ignore_errors=True)
        return exit_status.describe(os.waitstatus_to_exitcode(status)) if by_itself else ""

    def _prepare(self, job: Job) -> sandbox.Prepared:
        """What the children of this tier inherit. It is built again if a package was installed since."""
        tier, denied = job.tier, job.denied
        prepared = self._prepared.pop((tier, denied), None)
        if prepared is not None and not sandbox.is_current(prepared):
            sandbox.release(prepared)
            prepared = None
        if prepared is None:
            prepared = sandbox.prepare(tier=tier, denied=denied)
        self._prepared[tier, denied] = prepared
        return prepared

    def _fork(self, job: Job, once_confined: Callable[[], None] = lambda: None) -> _PooledProcess:
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
        endpoints = Endpoints(channel=ours, output=output)
        child.own_modules(len(sys.modules))
        try:
            pid = os.fork()
            if pid == 0:
                line = child.DescriptorStream(theirs.fileno())
                child.run(line, printing, lambda: sandbox.confine(plan, prepared), once_confined)
        except OSError:
            close(endpoints)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            theirs.close()
            os.close(printing)
        return _PooledProcess(pid=pid, folder=folder, endpoints=endpoints, prepared=prepared)


def close(endpoints: Endpoints) -> None:
    """Close our copies of a connection that another process uses now."""
    endpoints.channel.close()
    if endpoints.output is not None:
        os.close(endpoints.output)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
