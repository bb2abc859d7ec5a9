"""What a process is to its parent and to its neighbours: its session, its death with the parent, its memory's privacy."""

from __future__ import annotations

import os
import signal

from . import libc
from .errors import IsolationError

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
