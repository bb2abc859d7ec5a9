"""Resource limits: how much an attempt may use before the kernel stops it."""

from __future__ import annotations

import os
import sys

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

OPEN_FILES = 64
THREADS = 128
PENDING_SIGNALS = 256


def set_limits(*, cpu_seconds: int, memory_bytes: int, file_bytes: int, private_user: bool) -> list[str]:
    """Set every limit, soft and hard, and return a sentence for each one that could not be set.

    memory_bytes are added to what the process has mapped already (torch's libraries and the engine's heap).
    private_user says that no other process has this real user id, so that only its own threads are counted.
    """
    if resource is None:
        return ["This system has no resource limits: only the deadline stops an attempt."]
    notes = []
    mapped = mapped_bytes()
    wanted = {
        # An endless loop that the deadline missed. SIGXCPU comes first; a process that catches it is killed a second later.
        "CPU": (cpu_seconds, cpu_seconds + 1),
        "AS": None if mapped is None else (mapped + memory_bytes,) * 2,  # memory that Python or torch allocates
        "FSIZE": (file_bytes,) * 2,  # a full disk
        "NOFILE": (OPEN_FILES,) * 2,  # descriptors, and the kernel memory behind each one
        "NPROC": (THREADS + (0 if private_user else _threads_on_the_machine()),) * 2,  # fork and thread bombs
        "CORE": (0, 0),  # a core file would contain memory inherited from the engine
        "MEMLOCK": (0, 0),  # memory that cannot be swapped out
        "MSGQUEUE": (0, 0),  # kernel memory that outlives the process
        "SIGPENDING": (PENDING_SIGNALS,) * 2,  # kernel memory for queued signals and timers
        "NICE": (0, 0),
        "RTPRIO": (0, 0),  # a real-time loop freezes the machine
    }
    for name, limit in wanted.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is None:
            continue  # the system does not have this limit (macOS lacks the queues and priorities)
        if limit is None:
            notes.append("Without /proc the memory in use is unknown: memory is not limited.")
            continue
        try:
            _lower(number, limit)
        except (OSError, ValueError):
            notes.append(f"The limit RLIMIT_{name} could not be set.")
    _die_first_when_memory_runs_out()
    return notes


def _lower(number: int, limit: tuple[int, int]) -> None:
    """Set the limit, or keep the present one if it is lower: a hard limit cannot be raised."""
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        limit = (min(limit[0], hard), min(limit[1], hard))
    resource.setrlimit(number, limit)


def mapped_bytes() -> int | None:
    """The present size of the address space (VmSize), or None if /proc does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _threads_on_the_machine() -> int:
    """The number of threads on the whole machine: an upper bound for the user's own, and quick to read.

    RLIMIT_NPROC counts all threads of the user. If the limit were below what an editor and a browser use, the attempt could
    start no thread. With this bound added, it can start at least THREADS, and at most as many more as other users' threads.
    """
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].split(b"/")[1])
    except (OSError, ValueError, IndexError):
        return 4096


def _die_first_when_memory_runs_out() -> None:
    """Ask the kernel to kill this process first when memory runs out, and not the user's editor. It may refuse."""
    if sys.platform != "linux":
        return
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"1000")
    except OSError:
        pass  # not essential: the limit on the address space protects anyway
