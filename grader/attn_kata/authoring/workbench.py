"""The workbench: attempts of our own graded one after the other in one process, for the check of a kata.

The engine gives every attempt processes of its own, confined, and they cost as much as the grading. A specimen needs no
confinement. Here it answers in the grader's own process. It gets and gives the same bytes as in a process of its own; the
hidden tests and the diagnosis are the same too. Only forbidden operations are not blocked. What the reference and the search
have computed serves the next one.

Whoever knows what an attempt breaks may name it. These properties, and what they need, are asked in every case; every other
property in its first case alone: nothing is held against it, and the diagnosis has to know what else fails.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Collection
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from attn_kata.report.model import Report
from attn_kata.resources import katas_folder, solutions_folder

if TYPE_CHECKING:
    from attn_kata.grading.grade import Loaded

SECONDS = 300.0  # for one grading: more than its own limits, so only a call that does not come back takes as long


class Workbench:
    """The process that grades. It starts when it is first needed, and anew after an attempt that ended or blocked it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Workbench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def grade(self, slug: str, source: bytes, *, attempt: str, breaks: Collection[str] | None = None) -> Report | None:
        """The report, or None where this attempt cannot be graded here: it ends the process, or does not come back.

        With `breaks`, all cases are asked of these properties alone, and of what they need.
        """
        process = self._process = self._process or _start()
        assert process.stdin is not None
        assert process.stdout is not None
        asked: dict[str, Any] = {"slug": slug, "attempt": attempt, "source": source.decode()}
        if breaks is not None:
            asked["breaks"] = sorted(breaks)
        watchdog = threading.Timer(SECONDS, process.kill)
        watchdog.start()
        try:
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        finally:
            watchdog.cancel()
        if not answer.endswith(b"\n"):
            self.close()
            return None
        body = json.loads(answer)
        return None if body is None else Report.from_dict(body)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()


def _start() -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}; from {__name__} import serve; serve()"
    return subprocess.Popen(
        [sys.executable, "-I", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tempfile.gettempdir(),
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""},
    )


def serve() -> None:
    """Grade what comes on standard input, a line of JSON each, until it closes. Answer a report, or null after a fault."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):  # what an attempt prints goes nowhere
        os.dup2(nowhere, standard)

    from attn_kata.grading import loopback
    from attn_kata.grading.grade import Loaded

    slug, loaded = "", None
    for line in asked:
        job = json.loads(line)
        body: dict[str, Any] | None = None
        try:
            if loaded is None or slug != job["slug"]:
                slug, loaded = job["slug"], None
                loaded = Loaded.of(katas_folder() / slug, solutions_folder() / f"{slug}.py")
            asking = loaded if job.get("breaks") is None else briefly(loaded, job["breaks"])
            body = loopback.grade_here(job["source"].encode(), attempt=job["attempt"], loaded=asking).to_dict()
        except Exception:  # the engine, which is asked next, meets it again and reports it
            traceback.print_exc()
        answers.write(json.dumps(body).encode() + b"\n")
        answers.flush()


def briefly(loaded: Loaded, breaks: Collection[str]) -> Loaded:
    """The kata with all cases of these properties and of what they need, and the first case of every other property."""
    from attn_kata.grading.runner import with_needs

    whole = with_needs(loaded.tests, tuple(breaks))
    tests = [
        test
        if test.property.name in whole
        else replace(test, property=replace(test.property, cases=test.property.cases[:1]))
        for test in loaded.tests
    ]
    return replace(loaded, tests=tests)
