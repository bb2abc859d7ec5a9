"""Resource limits: what an attempt may use up before the kernel, and not a person, stops it."""

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
    """Set every limit, soft and hard alike, and return a sentence for each that could not be set.

    memory_bytes come on top of what the process has mapped already (torch's libraries and the engine's heap).
    private_user says that no other process has this real user id, so that the count of its threads starts at one.
    """
    if resource is None:
        return ["This system has no resource limits: only the deadline stops an attempt."]
    notes = []
    mapped = mapped_bytes()
    wanted = {
        # An endless loop that the deadline somehow missed. SIGXCPU first; whoever catches it is killed a second later.
        "CPU": (cpu_seconds, cpu_seconds + 1),
        "AS": None if mapped is None else (mapped + memory_bytes,) * 2,  # memory eaten by Python or by torch
        "FSIZE": (file_bytes,) * 2,  # a full disk
        "NOFILE": (OPEN_FILES,) * 2,  # descriptors used up, and kernel memory behind each
        "NPROC": (THREADS + (0 if private_user else _tasks_of_everybody()),) * 2,  # fork and thread bombs
        "CORE": (0, 0),  # a core file holds what the engine's memory held
        "MEMLOCK": (0, 0),  # memory that cannot be swapped out
        "MSGQUEUE": (0, 0),  # kernel memory that outlives the process
        "SIGPENDING": (PENDING_SIGNALS,) * 2,  # kernel memory queued signals and timers take
        "NICE": (0, 0),
        "RTPRIO": (0, 0),  # a real-time loop freezes the machine
    }
    for name, limit in wanted.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is None:
            continue  # the system does not know this one (macOS lacks the queues and priorities)
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
    """Set the limit, or leave what is there where that is lower still: a hard limit is not to be raised."""
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        limit = (min(limit[0], hard), min(limit[1], hard))
    resource.setrlimit(number, limit)


def mapped_bytes() -> int | None:
    """The size of the address space now (VmSize), or None where /proc does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _tasks_of_everybody() -> int:
    """How many threads run on the whole machine: no fewer than the user's own, and told in one short read.

    RLIMIT_NPROC counts all of the user's threads. A limit below what an editor and a browser have would let an attempt
    start none; this one leaves it at least THREADS, and at most as many more as others run here.
    """
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].split(b"/")[1])
    except (OSError, ValueError, IndexError):
        return 4096


def _die_first_when_memory_runs_out() -> None:
    """Ask the kernel to choose this process, not the user's editor, when memory runs out; it may refuse."""
    if sys.platform != "linux":
        return
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"1000")
    except OSError:
        pass  # a comfort: the limit on the address space is what counts
