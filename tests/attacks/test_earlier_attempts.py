"""A batch is graded in one engine: nothing of an earlier attempt, source or report, may lie in the memory of a later one."""

from __future__ import annotations

import os
import secrets

import pytest

SCAN = """
import re

needle = ("{0}" + "{1}").encode()
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        begin, end, mode = re.match(r"(\\w+)-(\\w+) (\\S+)", line).groups()
        if mode.startswith("rw") and int(end, 16) - int(begin, 16) < 1 << 28:
            try:
                memory.seek(int(begin, 16))
                found += memory.read(int(end, 16) - int(begin, 16)).count(needle)
            except (OSError, ValueError, OverflowError):
                pass
# The needle itself is there, put together; a copy of it may be.
print("FOUND", max(0, found - {2}))


def scaled_dot_product_attention(q, k, v):
    return v
"""


EARLIER = """
print("MARKER")


def scaled_dot_product_attention(q, k, v):
    raise ValueError("MARKER")
"""


def scan(half: str, other: str, known: int) -> bytes:
    return SCAN.format(half, other, known).encode()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at a process whose memory is private")
def test_an_attempt_finds_nothing_of_the_ones_before_it(start):
    engine, marker = start(0), secrets.token_hex(24)
    one, other = marker[:24], marker[24:]
    asked = {"attempt": "sdpa.py", "properties": ("output_shape",), "diagnose": False}

    def found() -> int:
        printed = engine.grade("sdpa", scan(one, other, 0), **asked).attempt_output
        return int(printed.split()[1])

    alone = found()  # its own needle
    for number in range(3):
        told = engine.grade("sdpa", EARLIER.replace("MARKER", marker).encode(), **asked)
        assert marker in told.attempt_output

        assert found() <= alone, f"after {number + 1} earlier attempts"
