"""Namespaces: the child is process 1, and has no network, no other processes and nowhere to write."""

from __future__ import annotations

import errno
import os
import select
import signal
import struct
from collections.abc import Iterable

from attn_kata.sandbox import libc, process
from attn_kata.sandbox.descriptors import close_all_but
from attn_kata.sandbox.errors import IsolationError

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_ALL = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET

MOUNT_SETATTR = 442  # the same number on every architecture
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 0x1, 0x2
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 0x1, 0x2, 0x4, 0x8, 0x4000, 0x40000

_NOBODY = 65534


def switched_off() -> str | None:
    """Why this system's settings refuse new namespaces; None if they do not."""
    if _setting("/proc/sys/user/max_user_namespaces") == 0:
        return "user namespaces are switched off (user.max_user_namespaces is 0)"
    if os.geteuid() != 0 and _setting("/proc/sys/kernel/unprivileged_userns_clone") == 0:
        return "user namespaces are for root only (kernel.unprivileged_userns_clone is 0)"
    if os.geteuid() != 0 and _setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
        return "user namespaces are for root only (kernel.apparmor_restrict_unprivileged_userns is 1)"
    return None


def _setting(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def enter(hidden: Iterable[str] = ()) -> None:
    """Return in a new process, which is process 1 of new namespaces. The old one waits for it and exits in the same way.

    `hidden` folders are covered with empty ones. Raises OSError, in the old process, if the system refuses.
    """
    user, group = os.geteuid(), os.getegid()
    process.open_memory()  # needed to write the id maps: the /proc files of a process with private memory belong to root
    libc.call("unshare", _ALL)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_NOBODY} {user} 1")
    _write("/proc/self/gid_map", f"{_NOBODY} {group} 1")
    process.keep_memory_private()
    _make_everything_read_only()
    for folder in hidden:
        flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
        libc.call("mount", b"nothing", os.fsencode(folder), b"tmpfs", flags, b"size=4k")
    _become_process_1()


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _make_everything_read_only() -> None:
    """Make every mount of this namespace read-only. Before Linux 5.12 the mounts can only be separated."""
    libc.call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    attributes = struct.pack("=QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    try:
        libc.syscall("mount_setattr", MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, len(attributes))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise


def _become_process_1() -> None:
    new_end, old_end = os.pipe()
    child = os.fork()
    if child:
        _wait_and_exit_alike(child, old_end)
    os.close(old_end)
    # getppid is always 0 here, so die_with cannot check that the old process lives. The pipe's other end shows it.
    libc.prctl("PR_SET_PDEATHSIG", process.PR_SET_PDEATHSIG, signal.SIGKILL)
    waiting = select.poll()
    waiting.register(new_end, select.POLLHUP)
    if waiting.poll(0):
        os._exit(1)
    os.close(new_end)
    if os.getpid() != 1:
        raise IsolationError("the new process namespace did not take effect")


def _wait_and_exit_alike(child: int, held: int) -> None:
    """Close all descriptors that others wait on, wait for process 1, and exit in the same way. Never returns."""
    try:
        close_all_but((held,))
        for descriptor in range(3):
            os.close(descriptor)
    except OSError:
        pass
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)
