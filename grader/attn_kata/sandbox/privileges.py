"""User ids and capabilities: a process of root gives up root's powers before the attempt runs, and can still read Python.

There are three ways, the best first. (1) Every id becomes an unused one. (2) Sometimes only root, or one other user, can read
Python's files (they are often under root's home, mode 700). Then only the *real* id becomes an unused one, and files are still
opened as their owner. Without capabilities, file modes apply to that owner as to everyone. RLIMIT_NPROC never limits a process
whose real id is root's, but it limits this one. (3) If ids cannot be changed at all, only the capabilities are dropped. In
every case Landlock and seccomp do the rest.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from attn_kata.sandbox import libc
from attn_kata.sandbox.errors import IsolationError

PR_CAPBSET_DROP = 24
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
LINUX_CAPABILITY_VERSION_3 = 0x20080522
CAP_KILL, CAP_SETGID, CAP_SETUID = 5, 6, 7
_MOST_CAPABILITIES = 64

# Ids that no account and no tool uses: above the range of containers, or, in a container with only 65536 ids, systemd's range
# for temporary services. A process picks its id by its process id, so that no two attempts share one.
_UNUSED_RANGES = ((0x70000000, 1 << 22), (61184, 4336))


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The ids to take: files are opened as `reads_as`; the real id is private to the process, from a range of unused ids."""

    first_id: int
    ids: int
    reads_as: int | None  # None: the private id too

    @property
    def note(self) -> str | None:
        if self.reads_as is None:
            return None
        whose = "root" if self.reads_as == 0 else f"user {self.reads_as}"
        return (
            f"Python's files are readable to {whose} only: the attempt keeps that user's id for opening files, without "
            "any capability."
        )


def choose_identity(paths: Iterable[str]) -> Identity | str | None:
    """The ids that a child of this process should take, so that it can still read the paths.

    None for an ordinary user, who has no powers to give up. A sentence with the reason if root's ids must stay.
    """
    if os.geteuid() != 0:
        return None
    if not _has_capabilities(CAP_KILL, CAP_SETGID, CAP_SETUID):
        return "Root may not change user ids here: the attempt keeps root's, without any capability."
    mapped = [(first, count) for first, count in _UNUSED_RANGES if _is_mapped(first, count)]
    if not mapped:
        return "No unused user id exists in this container: the attempt keeps root's, without any capability."
    first, count = mapped[0]
    existing = {os.path.realpath(path) for path in paths if os.path.exists(path)}
    for reader in (None, 0, *sorted({os.stat(path).st_uid for path in existing} - {0})):
        user = first if reader is None else reader
        if all(_readable(path, user) for path in existing):
            return Identity(first_id=first, ids=count, reads_as=reader)
    raise IsolationError(
        f"Only root with all its capabilities can read every one of {', '.join(sorted(existing))}: run as their owner."
    )


def take(identity: Identity) -> int:
    """Replace root's groups, group and user by the identity's. Returns the real user id. Raises OSError."""
    _drop_bounding_set()
    private = identity.first_id + os.getpid() % identity.ids
    reader = private if identity.reads_as is None else identity.reads_as
    os.setgroups([])
    os.setresgid(private, private, private)
    # The saved id is the reader's too: it allows signals from a root that lacks CAP_KILL.
    os.setresuid(private, reader, reader)
    return private


def drop_capabilities() -> None:
    """Give up every capability, and every way to get one back. Raises IsolationError if one is left."""
    _drop_bounding_set()
    with suppress(OSError):  # before Linux 4.3 there were no ambient capabilities
        libc.prctl("PR_CAP_AMBIENT", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    libc.call("capset", struct.pack("=Ii", LINUX_CAPABILITY_VERSION_3, 0), bytes(24))
    if left := capabilities():
        raise IsolationError(f"capabilities {left:#x} are still held after capset")


def capabilities() -> int:
    """The effective and permitted capabilities of this thread, as one bit set. Raises OSError."""
    header = libc.buffer(struct.pack("=Ii", LINUX_CAPABILITY_VERSION_3, 0))
    data = libc.buffer(bytes(24))
    libc.call("capget", header, data)
    effective, permitted, _, effective_high, permitted_high, _ = struct.unpack("=6I", data.raw)
    return int(effective | permitted | (effective_high | permitted_high) << 32)


def _drop_bounding_set() -> None:
    for capability in range(_MOST_CAPABILITIES):
        try:
            libc.prctl("PR_CAPBSET_DROP", PR_CAPBSET_DROP, capability)
        except OSError:  # past the last one, or not allowed: harmless, because no exec follows that could use the set
            return


def _has_capabilities(*wanted: int) -> bool:
    held = capabilities()
    return all(held >> capability & 1 for capability in wanted)


def _is_mapped(first: int, count: int) -> bool:
    """Whether these user and group ids exist here: the root of a container often has only a part of all ids."""
    return all(
        any(start <= first and first + count <= start + length for start, length in _mappings(name))
        for name in ("uid_map", "gid_map")
    )


def _mappings(name: str) -> list[tuple[int, int]]:
    try:
        with open(f"/proc/self/{name}", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return []
    return [(int(start), int(length)) for start, _, length in rows]


def _readable(path: str, user: int) -> bool:
    """Whether the user, in no group and without capabilities, can read this path and its direct entries.

    Every folder above it must allow passing. The entries count too: a package installed under a strict umask is closed.
    """
    above = path
    while above != os.path.dirname(above):
        above = os.path.dirname(above)
        if not _granted(os.stat(above), user, stat.S_IXOTH):
            return False
    if not os.path.isdir(path):
        return _granted(os.stat(path), user, stat.S_IROTH)
    if not _granted(os.stat(path), user, stat.S_IROTH | stat.S_IXOTH):
        return False
    with os.scandir(path) as entries:
        return all(_granted(entry.stat(), user, stat.S_IROTH) for entry in entries if os.path.exists(entry))


def _granted(status: os.stat_result, user: int, needed: int) -> bool:
    mode = status.st_mode >> 6 if status.st_uid == user else status.st_mode
    return mode & needed == needed
