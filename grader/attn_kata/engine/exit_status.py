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
    # By its own hand, or by the kernel's when memory ran out: a parent is not told which.
    "SIGKILL": "it was killed (SIGKILL), most likely because memory ran out",
    "SIGSYS": "it made a system call that is not allowed (SIGSYS)",
}


def describe(code: int) -> str:
    """The end of a process by its return code, negative for a signal as `subprocess` has it."""
    if code >= 0:
        return f"it ended its process (exit status {code})"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal
        name = f"signal {-code}"
    return _OF_SIGNALS.get(name, f"it was ended by {name}")
