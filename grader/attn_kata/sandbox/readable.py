"""Which files an attempt needs to read: Python, its libraries and a handful of the system's files; nothing of ours."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable

_OURS = __name__.partition(".")[0]

# Shared libraries that torch or the standard library load late, their cache, time zones and locales; what the number
# of processors is read from. Nothing of /proc/self: a rule names the file that exists now, which is the engine's.
_OF_THE_SYSTEM = (
    "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime",
    "/usr/share/zoneinfo", "/usr/share/locale", "/usr/lib/locale", "/sys/devices/system/cpu",
    "/sys/devices/system/node", "/proc/cpuinfo", "/proc/meminfo", "/dev/null", "/dev/zero", "/dev/random",
    "/dev/urandom",
)  # fmt: skip


def of_python() -> list[str]:
    """The folders that modules are imported from, and the prefixes that hold their shared libraries."""
    named = [sys.base_prefix, sys.base_exec_prefix, sys.prefix, *sys.path]
    named += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    kept = dict.fromkeys(os.path.realpath(path) for path in named if path and os.path.exists(path))
    return [path for path in kept if not _too_wide(path)]


def of_system() -> list[str]:
    """The files outside Python that it reads."""
    return [path for path in _OF_THE_SYSTEM if os.path.exists(path)]


def ours() -> list[str]:
    """This package wherever it is installed from, and what the import folders say about it.

    The answers lie beside it, and an editable installation leaves files that name their place.
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
    """Have the import system list its folders now: a folder split by a denied entry can no longer be listed later."""
    importlib.util.find_spec("a_module_that_nobody_has")


def ages(folders: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The folders with the time of their last change, in nanoseconds: what was listed is out of date when it moves."""
    return tuple((folder, os.stat(folder).st_mtime_ns) for folder in folders if os.path.isdir(folder))


def _too_wide(path: str) -> bool:
    """Whether the path is the whole machine or holds the user's home, and so says nothing about Python."""
    home = os.path.realpath(os.path.expanduser("~"))
    return path == os.sep or home == path or home.startswith(path + os.sep)
