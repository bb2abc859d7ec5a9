"""`python -m tests.bench [ROUNDS]`: what a person waits for, as ratios to `python -c "import torch"` in the same run.

Each round runs every command once, in turn, so that a machine whose speed drifts slows all of them alike; the ratio is taken
round by round, and the median and the range over the rounds are printed as a Markdown table.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from attn_kata.catalog import find
from attn_kata.engine.client import Engine

SIX = ("sdpa", "fused_qkv", "padding_mask", "causal_mask", "mha", "cross_attention")
IMPORT_TORCH = [sys.executable, "-c", "import torch"]
FACE = [sys.executable, "-m", "attn_kata"]


def seconds(command: list[str], folder: Path) -> float:
    """Wall time of one whole process."""
    environment = {**os.environ, "ATTN_KATA_HOME": str(folder / "home")}
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - started


def peak_pss(command: list[str], folder: Path) -> float:
    """The largest sum of PSS over a command's processes while it runs, in MiB; shared pages are counted once."""
    environment = {**os.environ, "ATTN_KATA_HOME": str(folder / "home")}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            total = 0
            try:
                root = psutil.Process(process.pid)
                family = [root, *root.children(recursive=True)]
            except psutil.Error:
                break
            for one in family:
                try:
                    total += one.memory_full_info().pss
                except (psutil.Error, OSError):
                    continue
            peak = max(peak, total / 2**20)
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    done.set()
    watcher.join()
    return peak


def row(name: str, values: list[float], unit: str = "×") -> str:
    """One line of the table: the median, and the range."""
    return f"| {name} | {statistics.median(values):.2f} {unit} | {min(values):.2f}–{max(values):.2f} |"


def main() -> None:
    """Measure and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grades = {slug: [*FACE, "grade", str(find(slug).solution), "--kata", slug] for slug in SIX}
        commands: dict[str, Callable[[], list[str]]] = {
            "attn-kata --help": lambda: [*FACE, "--help"],
            "attn-kata list": lambda: [*FACE, "list"],
            "attn-kata start mha": lambda: [*FACE, "start", "mha", "--dir", tempfile.mkdtemp(dir=folder)],
            **{f"attn-kata grade, cold, {slug}": (lambda command=command: command) for slug, command in grades.items()},
        }
        ratios: dict[str, list[float]] = {name: [] for name in commands}
        absolute: dict[str, list[float]] = {name: [] for name in commands}
        memory: list[float] = []
        warm: dict[int, list[float]] = {0: [], 1: [], 2: []}
        bases = []
        seconds(IMPORT_TORCH, folder)  # fills the page cache
        for _ in range(rounds):
            base = seconds(IMPORT_TORCH, folder)
            bases.append(base)
            for what, command in commands.items():
                taken = seconds(command(), folder)
                ratios[what].append(taken / base)
                absolute[what].append(taken)
            memory.append(peak_pss(grades["mha"], folder) / peak_pss(IMPORT_TORCH, folder))
        for tier in warm:
            with Engine(tier=tier) as engine:
                engine.grade("mha", find("mha").solution.read_bytes(), attempt="mha.py")
                for _ in range(3 * rounds):
                    started = time.perf_counter()
                    engine.grade("mha", find("mha").solution.read_bytes(), attempt="mha.py")
                    warm[tier].append(time.perf_counter() - started)
    base = statistics.median(bases)
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {rounds} rounds;")
    print(f'`python -c "import torch"` took {base:.2f} s (median)\n')
    print("| | median | range |\n|---|---|---|")
    for what in commands:
        if what.startswith("attn-kata grade"):
            print(row(what, ratios[what]))
        else:
            print(row(what, [1000 * value for value in absolute[what]], "ms"))
    print(row("memory at the peak of grading mha, PSS of all processes", memory))
    for tier, values in warm.items():
        print(row(f"a warm engine grades mha, tier {tier}", [value / base for value in values]))
    extra = 1000 * (statistics.median(warm[1]) - statistics.median(warm[0]))
    print(f"| tier 1 over tier 0, per grading | {extra:.1f} ms | |")


if __name__ == "__main__":
    main()
