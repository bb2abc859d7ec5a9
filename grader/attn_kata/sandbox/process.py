"""What a process is to its parent and its neighbours: its session, its death with the parent, its memory's privacy."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress

from attn_kata.sandbox import libc
from attn_kata.sandbox.errors import IsolationError

STRAYS_SECONDS = 2.0

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS = 38, 39


def own_session() -> None:
    """Lead a new session, so that one killpg ends everything started here and no terminal is attached."""
    try:
        os.setsid()
    except PermissionError:  # it leads a process group already: without a terminal of its own that is as good
        if os.getpgrp() != os.getpid():
            raise


def die_with(parent_pid: int) -> None:
    """Be killed when the parent dies, so that a killed engine leaves no endless loop behind.

    Linux forgets the wish whenever user or group ids change: ask after them. Exits if the parent is gone already.
    """
    libc.prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def keep_memory_private() -> None:
    """Let no process of the same user read this one's memory through /proc or ptrace, nor a core file hold it."""
    libc.prctl("PR_SET_DUMPABLE", PR_SET_DUMPABLE, 0)


def open_memory() -> None:
    """Undo keep_memory_private for as long as the process must own its files in /proc (see namespaces)."""
    libc.prctl("PR_SET_DUMPABLE", PR_SET_DUMPABLE, 1)


def gain_no_privileges() -> None:
    """Let no exec raise privileges (set-uid files), which is also what lets an ordinary user load the next layers."""
    libc.prctl("PR_SET_NO_NEW_PRIVS", PR_SET_NO_NEW_PRIVS, 1)
    if libc.prctl("PR_GET_NO_NEW_PRIVS", PR_GET_NO_NEW_PRIVS) != 1:
        raise IsolationError("PR_SET_NO_NEW_PRIVS was accepted and is not in force")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that none escapes being reaped."""
    libc.prctl("PR_SET_CHILD_SUBREAPER", PR_SET_CHILD_SUBREAPER, 1)


def end(child: int) -> int:
    """Kill the child with everything in its session's group, reap all of it, and return the child's wait status.

    In tier 2 the child only waits for process 1 of its namespaces, which is in its group; nothing can leave a group
    from tier 1 on. What left it in tier 0 is end_strays's.
    """
    for kill in (os.killpg, os.kill):  # the group first; it has none where it was caught before own_session
        with suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(ChildProcessError):
        while True:  # the rest of the group, which this process adopted when the child died
            os.waitpid(-child, 0)
    return status


def end_strays(known: Collection[int]) -> int:
    """Kill and reap the children of this process that it does not know: daemons that it adopted. Returns how many.

    Killing one makes its own children this process's, so that it looks until it finds none; not for ever, because in
    tier 0 a chain of processes that each start the next and end may outrun it.
    """
    ended, until = 0, time.monotonic() + STRAYS_SECONDS
    while (strays := [pid for pid in _children() if pid not in known]) and time.monotonic() < until:
        for pid in strays:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        ended += len(strays)
    return ended


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []
