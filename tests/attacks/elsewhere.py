"""Grades attacks as another user or under an older kernel: run by test_elsewhere.py, in a process of its own.

stdin: {"tier", "without_landlock", "canary", "attacks": [{"slug", "source", "asked"}]}
stdout: {"attacks": [{"report", "left", "session", "uid"} or {"fault"}], "after"}: `left` are the sessions of the processes
that were there after the grading, `session` is the engine's own, and `after` the report on the reference in the end. A fault
is one attack's: the next is graded by an engine of its own.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import sys
import time
import traceback
from typing import Any

import psutil

from attn_kata import resources
from attn_kata.engine.client import Engine
from attn_kata.sandbox import libc, seccomp


def refuse_landlock() -> None:
    """Make the kernel answer as one without Landlock does, for this process and all that it starts."""
    create_ruleset = 444
    steps = (
        seccomp.Instruction(seccomp.BPF_LD_W_ABS, 0, 0, 0),
        seccomp.Instruction(seccomp.BPF_JEQ, 0, 1, create_ruleset),
        seccomp.Instruction(seccomp.BPF_RET, 0, 0, seccomp.SECCOMP_RET_ERRNO | errno.ENOSYS),
        seccomp.Instruction(seccomp.BPF_RET, 0, 0, seccomp.SECCOMP_RET_ALLOW),
    )
    libc.prctl("PR_SET_NO_NEW_PRIVS", 38, 1)
    assert platform.machine() in ("x86_64", "aarch64")
    seccomp.load(seccomp.Filter(steps).for_process(0))


def sessions_below(process: psutil.Process) -> list[int]:
    """The session of every process below this one."""
    found = []
    for child in process.children(recursive=True):
        with contextlib.suppress(ProcessLookupError):
            found.append(os.getsid(child.pid))
    return found


def main() -> None:
    asked = json.load(sys.stdin)
    if asked["without_landlock"]:
        refuse_landlock()
    done: list[dict[str, Any]] = []
    reference = (resources.solutions_folder() / "sdpa.py").read_bytes()
    engine = ready(asked["tier"])
    for attack in asked["attacks"]:
        try:
            done.append(told(engine, attack))
        except Exception:
            done.append({"fault": traceback.format_exc()})
            engine.close()
            engine = ready(asked["tier"])
    after = engine.grade("sdpa", reference, attempt="sdpa.py")
    engine.close()
    json.dump({"attacks": done, "after": after.to_dict()}, sys.stdout)


def ready(tier: int) -> Engine:
    """An engine that has warmed up."""
    engine = Engine(tier=tier)
    engine.wait_until_ready()
    time.sleep(0.5)
    return engine


def told(engine: Engine, attack: dict[str, Any]) -> dict[str, Any]:
    """What is told of one attack."""
    process = psutil.Process(engine._process.pid)
    session = os.getsid(process.pid)
    report = engine.grade(attack["slug"], attack["source"].encode(), **attack["asked"])
    until = time.monotonic() + 15
    while time.monotonic() < until:  # besides what stands ready, what is being reaped
        left = sessions_below(process)
        others = [one for one in left if one != session]
        if len(others) <= 2 and len(set(others)) <= 1 and left.count(session) <= 2:
            break
        time.sleep(0.01)
    return {"report": report.to_dict(), "left": left, "session": session, "uid": os.getuid()}


if __name__ == "__main__":
    main()
