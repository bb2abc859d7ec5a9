"""The files that an attempt needs to read: Python, its libraries and a few system files. None of attn-kata's."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable

_OURS = __name__.partition(".")[0]

# Shared libraries that torch or the standard library load late, their cache, time zones, locales, and the number of
# processors. Not /proc/self: a rule would name the engine's files, because the rules are made in the engine.
_OF_THE_SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/usr/share/locale",
    "/usr/lib/locale",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
)


def of_python() -> list[str]:
    """The folders that modules are imported from, and the prefixes with their shared libraries."""
    named = [sys.base_prefix, sys.base_exec_prefix, sys.prefix, *sys.path]
    named += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    kept = dict.fromkeys(os.path.realpath(path) for path in named if path and os.path.exists(path))
    return [path for path in kept if not _too_wide(path)]


def of_system() -> list[str]:
    """The system files that an attempt may read."""
    return [path for path in _OF_THE_SYSTEM if os.path.exists(path)]


def own_files() -> list[str]:
    """This package's folder, and its entries in the import folders.

    The answers are beside the package, and an editable installation leaves files that name its folder.
    """
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = {package}
    for folder in sys.path:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        found.update(os.path.join(folder, entry) for entry in entries if _OURS in entry.replace("-", "_"))
    return sorted(found)


def remember_import_folders() -> None:
    """Have the import system list its folders now: later, a folder split around a denied entry cannot be listed."""
    importlib.util.find_spec("a_module_that_nobody_has")


def change_times(folders: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The folders with their times of last change, in nanoseconds. If a time changes, the listing is out of date."""
    return tuple((folder, os.stat(folder).st_mtime_ns) for folder in folders if os.path.isdir(folder))


def _too_wide(path: str) -> bool:
    """Whether the path is the root or contains the user's home: then it is too wide to stand for Python."""
    home = os.path.realpath(os.path.expanduser("~"))
    return path == os.sep or home == path or home.startswith(path + os.sep)
