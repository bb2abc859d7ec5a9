"""`python -m tests.bench [ROUNDS [SAVES]]`: what a person waits for, as ratios to `python -c "import torch"` in the same run.

Each round runs every command once, in turn, so that a machine whose speed drifts slows all of them alike; the ratio is taken
round by round, and the median and the range over the rounds are printed as a Markdown table. At the end `watch` grades
SAVES saves (200), and what its processes hold after the first and the last tenth is compared.
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

from . import tiers
from .watch import Kept, Watch, watching

SIX = ("sdpa", "fused_qkv", "padding_mask", "causal_mask", "mha", "cross_attention")
PYTHON = [sys.executable, "-c", "pass"]
IDLE_SECONDS = 0.6  # between two gradings of a warm engine: nobody saves faster, and it makes the next one ready
IMPORT_TORCH = [sys.executable, "-c", "import torch"]
FACE = [sys.executable, "-m", "attn_kata"]


def as_installed(folder: Path) -> dict[str, str]:
    """The environment of a command: modules are compiled once and kept, as where pip installed them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "ATTN_KATA_HOME": str(folder / "home")}


def seconds(command: list[str], folder: Path) -> float:
    """Wall time of one whole process."""
    environment = as_installed(folder)
    started = time.perf_counter()
    subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    )
    return time.perf_counter() - started


def peak_pss(command: list[str], folder: Path) -> float:
    """The largest sum of PSS over a command's processes while it runs, in MiB; shared pages are counted once."""
    environment = as_installed(folder)
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
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


def flat(watch: Watch, saves: int) -> tuple[Kept, Kept]:
    """What the processes of a `watch` hold after a tenth of the saves and after all of them."""
    for _ in range(saves // 10):
        watch.save()
    early = watch.kept()
    for _ in range(saves - saves // 10):
        watch.save()
    return early, watch.kept()


def main() -> None:
    """Measure and print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    saves = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as watched:
        folder = Path(name)
        grades = {slug: [*FACE, "grade", str(find(slug).solution), "--kata", slug] for slug in SIX}
        commands: dict[str, Callable[[], list[str]]] = {
            "python -c pass": lambda: PYTHON,
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
        for command in (
            lambda: IMPORT_TORCH,
            *commands.values(),
        ):  # fills the page cache, and compiles what was not yet
            seconds(command(), folder)
        for _ in range(rounds):
            base = seconds(IMPORT_TORCH, folder)
            bases.append(base)
            for what, command in commands.items():
                taken = seconds(command(), folder)
                ratios[what].append(taken / base)
                absolute[what].append(taken)
            memory.append(peak_pss(grades["mha"], folder) / peak_pss(IMPORT_TORCH, folder))
        saved: list[float] = []
        with watching(Path(watched)) as watch:
            for _ in range(rounds):
                base = seconds(IMPORT_TORCH, folder)
                for _ in range(3):
                    time.sleep(IDLE_SECONDS)
                    saved.append(watch.save() / base)
            early, late = flat(watch, saves)
        for tier in warm:
            with Engine(tier=tier) as engine:
                engine.grade("mha", find("mha").solution.read_bytes(), attempt="mha.py")
                time.sleep(3)
                for _ in range(3 * rounds):
                    time.sleep(IDLE_SECONDS)
                    started = time.perf_counter()
                    engine.grade("mha", find("mha").solution.read_bytes(), attempt="mha.py")
                    warm[tier].append(time.perf_counter() - started)
    base = statistics.median(bases)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"{machine}, Python {platform.python_version()}, {rounds} rounds;")
    print(f'`python -c "import torch"` took {base:.2f} s (median)\n')
    print("| | median | range |\n|---|---|---|")
    for what in commands:
        if what.startswith("attn-kata grade"):
            print(row(what, ratios[what]))
        else:
            print(row(what, [1000 * value for value in absolute[what]], "ms"))
    start = absolute.pop("python -c pass")
    for what in absolute:
        if not what.startswith("attn-kata grade"):
            own = [1000 * (taken - least) for taken, least in zip(absolute[what], start, strict=True)]
            print(row(f"{what}, beyond Python's own start", own, "ms"))
    print(row("attn-kata watch, mha: from a save to the verdict on the screen", saved))
    print(row("memory at the peak of grading mha, PSS of all processes", memory))
    for tier, values in warm.items():
        print(row(f"a warm engine grades mha, tier {tier}", [value / base for value in values]))
    print(tiers.row(tiers.measured(3 * rounds)))
    print(f"\nattn-kata watch holds after {saves // 10} and after {saves} more saves:")
    print(f"{early.processes} and {late.processes} processes, {early.descriptors} and {late.descriptors} descriptors,")
    print(f"{early.memory:.0f} and {late.memory:.0f} MiB of its own, {early.files} and {late.files} temporary files.")


if __name__ == "__main__":
    main()
