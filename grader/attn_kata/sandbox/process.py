"""A process among others: its session, its death with the parent, the privacy of its memory, its end."""

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
    """Start a new session, so that one killpg ends everything started here, and no terminal is attached."""
    try:
        os.setsid()
    except PermissionError:  # it leads a process group already: that is enough, because it has no terminal
        if os.getpgrp() != os.getpid():
            raise


def die_with(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent dies, so that a killed engine leaves no endless loop.

    Linux drops the setting when user or group ids change, so call this after them. Exits if the parent is gone already.
    """
    libc.prctl("PR_SET_PDEATHSIG", PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def keep_memory_private() -> None:
    """Prevent other processes of the user from reading this one's memory (/proc, ptrace), and prevent core files."""
    libc.prctl("PR_SET_DUMPABLE", PR_SET_DUMPABLE, 0)


def open_memory() -> None:
    """Undo keep_memory_private, while the process must own its files in /proc (see namespaces)."""
    libc.prctl("PR_SET_DUMPABLE", PR_SET_DUMPABLE, 1)


def gain_no_privileges() -> None:
    """Ignore set-uid files from now on. An ordinary user needs this setting to load Landlock and seccomp."""
    libc.prctl("PR_SET_NO_NEW_PRIVS", PR_SET_NO_NEW_PRIVS, 1)
    if libc.prctl("PR_GET_NO_NEW_PRIVS", PR_GET_NO_NEW_PRIVS) != 1:
        raise IsolationError("PR_SET_NO_NEW_PRIVS was accepted, but is not in force")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that all of them can be reaped."""
    libc.prctl("PR_SET_CHILD_SUBREAPER", PR_SET_CHILD_SUBREAPER, 1)


def end(child: int) -> int:
    """Kill the child and its whole process group, reap them, and return the child's wait status.

    In tier 2 the child only waits for process 1 of its namespaces, which is in the same group. From tier 1 on no process can
    leave the group. In tier 0 one can; end_strays ends those.
    """
    for kill in (os.killpg, os.kill):  # the group first; a child killed before own_session has none
        with suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with suppress(ChildProcessError):
        while True:  # the rest of the group, which this process adopted when the child died
            os.waitpid(-child, 0)
    return status


def end_strays(known: Collection[int]) -> int:
    """Kill and reap the children of this process that are not in `known`: daemons that it adopted. Returns how many.

    When one is killed, this process adopts its children too, so it repeats until it finds none. It stops after
    STRAYS_SECONDS, because in tier 0 a chain of processes, each starting the next, could go on for ever.
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
