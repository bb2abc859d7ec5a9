"""`python -m tests.bench.room [KEYS]`: from a key to its character in the room, in milliseconds, as a Markdown table.

A real room in a real terminal, wide and narrow; KEYS keys (200) while nothing else goes on, and as many while a grading
computes without a pause. Between two keys lie 20 to 120 ms by chance, so that they do not fall in step with the screen.
"""

from __future__ import annotations

import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ..interview.terminal import SLOW, Terminal

SIZES = {"130 × 40": (40, 130), "80 × 24": (24, 80)}
GRADING_SECONDS = 5.0  # a grading of SLOW takes a second more
IN_A_LINE = 40
F3 = "\x1bOR"


def characters() -> Iterator[str]:
    """Letters, each only once."""
    return (chr(code) for code in (*range(0x100, 0x180), *range(0x400, 0x500), *range(0x1E00, 0x1F00)))


def typed(one: Terminal, letters: Iterator[str], pauses: random.Random, *, seconds: float, most: int) -> list[float]:
    """Type for so long, and measure every key."""
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(took) < most:
        one.quiet(pauses.uniform(0.02, 0.12))
        took.append(one.milliseconds(next(letters)))
        if len(took) % IN_A_LINE == 0:
            one.child.send("\r# ")
    return took


def measured(rows: int, columns: int, keys: int) -> tuple[list[float], list[float]]:
    """Keys in a room of that size: at rest, and while a grading runs."""
    pauses, letters = random.Random(0), characters()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = Terminal(folder, folder / "home", rows=rows, columns=columns)
        try:
            one.begins_coding()
            (folder / "interview-1" / "sdpa.py").write_bytes(b"\n" + SLOW)
            one.shows("sum(range(300_000))")
            one.quiet(5)  # torch has been loaded
            one.child.send("# ")  # what is typed is a comment: the grading has to compute
            idle = typed(one, letters, pauses, seconds=600, most=keys)
            busy: list[float] = []
            while len(busy) < keys:
                one.child.send("\x13\x0c")  # save, and check in the engine
                one.shows("utput (F4): running" if columns > 100 else "F4 output: running")
                one.child.send(F3)
                busy += typed(one, letters, pauses, seconds=GRADING_SECONDS, most=keys - len(busy))
                assert "running" in one.text, f"the grading was over before the last key\n{one.text}"
                one.shows("run at")
            return idle, busy
        finally:
            one.child.close(force=True)


def row(name: str, took: list[float]) -> str:
    """One line of the table."""
    took = sorted(took)
    places = (took[len(took) * part // 100] for part in (90, 99))
    shown = [took[0], statistics.median(took), *places, took[-1]]
    return f"| {name} | {len(took)} | " + " | ".join(f"{one:.1f}" for one in shown) + " |"


def main() -> None:
    """Measure and print the table."""
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(
        "| from a key to its character, ms | keys | least | median | 90 % | 99 % | most |\n|---|---|---|---|---|---|---|"
    )
    for name, (rows, columns) in SIZES.items():
        idle, busy = measured(rows, columns, keys)
        print(row(f"{name}, at rest", idle))
        print(row(f"{name}, while a grading runs", busy), flush=True)


if __name__ == "__main__":
    main()
