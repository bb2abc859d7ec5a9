"""The sandbox: the kernel's protection layers between an attempt and the machine, around a freshly forked child.

    once, in the engine     prepared = prepare(tier=GUARDED, denied=[folders with answers])
    in each child           in_force = confine(Plan(tier=GUARDED, ...), prepared)
    to end one              end(child), then end_strays(known=[the other children])

tier 0 (PRACTICE)   own session, death with the parent, limits, descriptors closed, environment cleared: any system
tier 1 (GUARDED)    tier 0, and no capabilities, no root user id, Landlock, seccomp: Linux
tier 2 (JAIL)       tier 1, and namespaces: no network, no other process, nowhere to write

A layer that the system lacks is left out, and `InForce.notes` says so. A layer that the system has but that fails raises
IsolationError, and then the attempt must not run. This package imports only the standard library.
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
