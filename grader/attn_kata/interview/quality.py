"""The findings of a linter (pyflakes), and what is left over in the code. The source is parsed and never run.

Both work in a separate process, because a source can exhaust a parser's memory or stack.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from attn_kata.report.plain import one_line

SECONDS = 10.0
MOST_FINDINGS = 50
_LINE = re.compile(r"attempt\.py:(\d+):(?:\d+:)? (.*)")
_PROGRAM = """
import runpy
import sys
sys.path.append(sys.argv[1])
from pyflakes import api, reporter
source = sys.stdin.buffer.read()
api.check(source, "attempt.py", reporter.Reporter(sys.stdout, sys.stderr))
try:
    for line, says in runpy.run_path(sys.argv[2])["findings"](source.decode("utf-8", "replace")):
        print(f"attempt.py:{line}: {says}")
except (SyntaxError, ValueError):  # pyflakes has said so, where it is no Python
    pass
"""
_LEFTOVERS = str(Path(__file__).with_name("leftovers.py"))


@dataclass(frozen=True, kw_only=True)
class LintFinding:
    """One finding: its line (from 1) and the linter's message."""

    line: int
    says: str


def lint(source: bytes) -> tuple[LintFinding, ...] | None:
    """The findings, or None when the linter could not read the source (not Python) or took too long."""
    found = importlib.util.find_spec("pyflakes")
    if found is None or found.origin is None:
        return None
    folder = str(Path(found.origin).parents[1])
    with tempfile.TemporaryDirectory(prefix="attn-kata-") as empty:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _PROGRAM, folder, _LEFTOVERS],
                input=source,
                capture_output=True,
                timeout=SECONDS,
                cwd=empty,
                env={name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
                | {"PYTHONIOENCODING": "utf-8"},
                check=False,
            )
        except (subprocess.TimeoutExpired, OSError):
            return None
    if done.returncode != 0 or done.stderr.strip():
        return None
    matches = [_LINE.fullmatch(line) for line in done.stdout.decode("utf-8", "replace").splitlines()]
    found_ones = [LintFinding(line=int(m[1]), says=one_line(m[2], most=200)) for m in matches if m]
    return tuple(sorted(found_ones, key=lambda one: one.line)[:MOST_FINDINGS])
