"""Landlock: limits the files that a process can open, by path. It needs no privileges and cannot be undone.

A rule allows access beneath a path, and no rule can take access away. So a denied path must be outside all rules: a folder that
contains something denied gets one rule per entry, instead of one rule for the whole folder.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Iterator

from attn_kata.sandbox import libc

# The same numbers on every architecture.
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_CREATE_RULESET_VERSION = 1
LANDLOCK_RULE_PATH_BENEATH = 1
LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF = 1

LANDLOCK_ACCESS_FS_WRITE_FILE = 1 << 1
LANDLOCK_ACCESS_FS_READ_FILE = 1 << 2
LANDLOCK_ACCESS_FS_READ_DIR = 1 << 3
# Bits 0 to 12: execute, write, read, read folders, remove (2), make (7). Later versions added the rights named below.
_FS_OF_ABI_1 = (1 << 13) - 1
LANDLOCK_ACCESS_FS_REFER = 1 << 13
LANDLOCK_ACCESS_FS_TRUNCATE = 1 << 14
LANDLOCK_ACCESS_FS_IOCTL_DEV = 1 << 15
LANDLOCK_ACCESS_NET_BIND_TCP, LANDLOCK_ACCESS_NET_CONNECT_TCP = 1, 2
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL = 1, 2

FIRST_ABI_THAT_SEES_TRUNCATION = 3

_WRITABLE_DEVICE = "/dev/null"


def abi() -> int:
    """The version of Landlock that is active in this kernel; 0 for none."""
    try:
        version = LANDLOCK_CREATE_RULESET_VERSION
        return libc.syscall("landlock_create_ruleset", LANDLOCK_CREATE_RULESET, None, 0, version)
    except (OSError, AttributeError, TypeError):
        return 0


def handled(version: int) -> tuple[int, int, int]:
    """The file, network and scope rights that this version can control. They are refused unless a rule allows them."""
    files = _FS_OF_ABI_1
    files |= LANDLOCK_ACCESS_FS_REFER if version >= 2 else 0
    files |= LANDLOCK_ACCESS_FS_TRUNCATE if version >= 3 else 0
    files |= LANDLOCK_ACCESS_FS_IOCTL_DEV if version >= 5 else 0
    network = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP if version >= 4 else 0
    scope = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL if version >= 6 else 0
    return files, network, scope


def create_ruleset(version: int, readable: Iterable[str]) -> int:
    """Build a ruleset that only allows reading beneath these paths. Returns its descriptor. Raises OSError.

    A rule costs two system calls, so this is done once in the engine. Each child inherits the descriptor.
    """
    files, network, scope = handled(version)
    size = 8 if version < 4 else 16 if version < 6 else 24  # an older kernel knows a shorter structure
    attributes = struct.pack("=QQQ", files, network, scope)[:size]
    ruleset = libc.syscall("landlock_create_ruleset", LANDLOCK_CREATE_RULESET, attributes, size, 0)
    try:
        for path in readable:
            _allow_reading(ruleset, files, path)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset


def _allow_reading(ruleset: int, handled_files: int, path: str) -> None:
    try:
        # Only Linux has O_PATH.
        anchor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return  # a path that the engine cannot reach, its child cannot reach either
    try:
        access = LANDLOCK_ACCESS_FS_READ_FILE
        if stat.S_ISDIR(os.fstat(anchor).st_mode):
            access |= LANDLOCK_ACCESS_FS_READ_DIR
        if path == _WRITABLE_DEVICE:
            access |= handled_files & (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
        rule = struct.pack("=Qi", access, anchor)
        libc.syscall("landlock_add_rule", LANDLOCK_ADD_RULE, ruleset, LANDLOCK_RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(anchor)


def restrict_self(ruleset: int, version: int) -> None:
    """Put the ruleset in force for this thread and everything that it starts, for good, and close it. Raises OSError."""
    # Refusals are expected here: keep them out of the system's audit log.
    flags = LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF if version >= 7 else 0
    libc.syscall("landlock_restrict_self", LANDLOCK_RESTRICT_SELF, ruleset, flags)
    os.close(ruleset)


def without(paths: Iterable[str], denied: Iterable[str]) -> tuple[list[str], list[str]]:
    """The paths to allow, so that all of `paths` is readable except the denied ones; and the folders split for that.

    Links are resolved first. A link to a denied folder is denied. A link to a folder that contains a denied one is split too.
    """
    refused = frozenset(os.path.realpath(path) for path in denied)
    allowed: dict[str, None] = {}
    split: dict[str, None] = {}
    for path in paths:
        for piece in _pieces(os.path.realpath(path), refused, split):
            allowed[piece] = None
    return list(allowed), list(split)


def _pieces(path: str, refused: frozenset[str], split: dict[str, None]) -> Iterator[str]:
    if path in split or any(_beneath(path, one) for one in refused):
        return
    if not any(_beneath(one, path) for one in refused):
        yield path
        return
    split[path] = None
    try:
        entries = sorted(os.listdir(path))
    except OSError:
        return
    for entry in entries:
        yield from _pieces(os.path.realpath(os.path.join(path, entry)), refused, split)


def _beneath(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
