"""What stands between an attempt and the machine: the kernel's layers around a freshly forked child.

    once, in the engine     prepared = prepare(tier=GUARDED, denied=[folders with answers])
    in each child           in_force = confine(Plan(tier=GUARDED, ...), prepared)
    to end one              end(child), then end_strays(known=[the other children])

tier 0 (PRACTICE)   own session, death with the parent, limits, no descriptor, no environment: any system
tier 1 (GUARDED)    and no capability, no user id of root's, Landlock, seccomp: Linux
tier 2 (JAIL)       and namespaces: no network, no other process, nothing to write to

A layer that the system lacks is left out and said in `InForce.notes`; one that it has and that fails is an
IsolationError, and then nothing of the attempt may run. This package imports nothing but the standard library.
"""

from __future__ import annotations

from attn_kata.sandbox.confinement import (
    GUARDED,
    JAIL,
    PRACTICE,
    Available,
    InForce,
    Plan,
    Prepared,
    confine,
    guard_engine,
    is_current,
    prepare,
    probe,
    release,
)
from attn_kata.sandbox.errors import IsolationError
from attn_kata.sandbox.process import end, end_strays

__all__ = [
    "GUARDED",
    "JAIL",
    "PRACTICE",
    "Available",
    "InForce",
    "IsolationError",
    "Plan",
    "Prepared",
    "confine",
    "end",
    "end_strays",
    "guard_engine",
    "is_current",
    "prepare",
    "probe",
    "release",
]
