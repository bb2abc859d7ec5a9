"""How a process ended, in words for the report."""

from __future__ import annotations

import signal

_OF_SIGNALS = {
    "SIGSEGV": "it crashed (SIGSEGV)",
    "SIGABRT": "it crashed (SIGABRT)",
    "SIGBUS": "it crashed (SIGBUS)",
    "SIGILL": "it crashed (SIGILL)",
    "SIGFPE": "it crashed (SIGFPE)",
    "SIGXCPU": "it used up its CPU time (SIGXCPU)",
    "SIGXFSZ": "it wrote a file larger than it may (SIGXFSZ)",
    # The attempt killed itself, or the kernel killed it because memory ran out: the parent cannot see which.
    "SIGKILL": "it was killed (SIGKILL), most likely because memory ran out",
    "SIGSYS": "it made a system call that is not allowed (SIGSYS)",
}


def describe(code: int) -> str:
    """How a process ended, by its return code. As in `subprocess`, a negative code is a signal."""
    if code >= 0:
        return f"it ended its process (exit status {code})"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal
        name = f"signal {-code}"
    return _OF_SIGNALS.get(name, f"it was ended by {name}")
