"""`python -m tests.bench.classroom [COUNT [KILLS]]`: what a class costs, on one core and on all of them.

COUNT (120) submissions of mha, half of them right, are graded by `attn-kata class` in a real process. Costs are ratios to
`python -c "import torch"` in the same run, both as CPU time of all processes. What stays in memory is compared between the time
after the first 50 results and the end. With KILLS, a further run is killed that often with SIGKILL, and resumed. On a machine
that others use too, only the CPU times mean something.
"""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import attn_kata
from attn_kata import catalog, specimens

KATA = "mha"
WARM = 50
SLOW = ("loops_over_everything", "checkpointed", "drawn_dropout", "online_softmax")  # nobody hands these in
WRONG = (
    "scale_missing", "scale_embed_dim", "softmax_query_axis", "mask_lost", "mask_inverted", "split_no_transpose",
    "merge_no_transpose", "dropout_never", "view_of_merged", "mask_after_softmax",
)  # fmt: skip


@dataclass(kw_only=True)
class Measured:
    """One run: samples of (time, results, CPU seconds, resident MiB and descriptors of what stays), and its wall time."""

    samples: list[tuple[float, int, float, float, int]] = field(default_factory=list)
    wall: float = 0.0
    returncode: int = 0

    def _steady(self) -> tuple[tuple[float, int, float, float, int], tuple[float, int, float, float, int]]:
        """The samples after the first tenth, and before the last result: then the engines end, and their times with them."""
        most = max(sample[1] for sample in self.samples)
        first = next(sample for sample in self.samples if sample[1] >= most // 10)
        last = [sample for sample in self.samples if sample[1] < most][-1]
        return first, last

    def cpu_each(self) -> float:
        first, last = self._steady()
        return (last[2] - first[2]) / (last[1] - first[1])

    def wall_each(self) -> float:
        first, last = self._steady()
        return (last[0] - first[0]) / (last[1] - first[1])

    def memory(self) -> tuple[float, float]:
        """The most MiB in the samples from WARM to twice WARM results, and in those of the last tenth."""
        early, late = self._early_and_late()
        return max((sample[3] for sample in early), default=0.0), max((sample[3] for sample in late), default=0.0)

    def descriptors(self) -> tuple[int, int]:
        """The most open descriptors in the same samples."""
        early, late = self._early_and_late()
        return max((sample[4] for sample in early), default=0), max((sample[4] for sample in late), default=0)

    def _early_and_late(self) -> tuple[list[tuple[float, int, float, float, int]], ...]:
        most = max(sample[1] for sample in self.samples)
        early = [sample for sample in self.samples if WARM <= sample[1] <= 2 * WARM]
        return early, [sample for sample in self.samples if sample[1] >= 0.9 * most]


def written(folder: Path, count: int, *, only: str = "") -> Path:
    """A folder of submissions, all different."""
    kata = catalog.find(KATA)
    every = {specimen.name: specimen for specimen in specimens.read(kata.folder)}
    right = [path.stem for path in sorted((kata.folder / "right").glob("*.py")) if path.stem not in SLOW]
    folder.mkdir()
    for number in range(count):
        names = right if (only == "right" or (not only and number % 2)) else WRONG
        text = every[names[number // 2 % len(names)]].source()
        (folder / f"student{number:05}.py").write_text(f"{text}\n# {number}\n")
    return folder


def results(database: Path) -> dict[str, bytes]:
    """What is stored, by student. Not opened read-only: a write that a kill has cut off must be taken back first."""
    try:
        with sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=20) as db:
            return dict(db.execute("SELECT student, report FROM result").fetchall())
    except sqlite3.OperationalError:
        return {}


def _count(database: Path) -> int:
    try:
        with sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=20) as db:
            return int(db.execute("SELECT COUNT(*) FROM result").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def _tree(process: psutil.Process) -> tuple[float, float, int]:
    """CPU seconds of all processes, ended ones too, and the resident MiB and open descriptors of those that stay."""
    cpu = resident = 0.0
    descriptors = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            with one.oneshot():
                times = one.cpu_times()
                cpu += times.user + times.system + times.children_user + times.children_system
                if time.time() - one.create_time() > 3:  # the engines and the zygotes; what is younger is a grading
                    resident += one.memory_info().rss / 2**20
                    descriptors += one.num_fds()
        except psutil.Error:
            continue
    return cpu, resident, descriptors


def command(folder: Path, out: Path, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "attn_kata",
        "class",
        str(folder),
        "--kata",
        KATA,
        "--seed",
        "11",
        "--out",
        str(out),
        *more,
    ]


def graded(folder: Path, out: Path, processors: set[int]) -> Measured:
    """Grade a folder on these processors, and look at it twice a second."""
    measured = Measured()
    started = time.perf_counter()
    process = subprocess.Popen(
        command(folder, out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            count, tree = _count(out / "class.db"), _tree(watched)
        except psutil.Error:
            break
        measured.samples.append((time.perf_counter(), count, *tree))
        time.sleep(0.3)
    measured.returncode = process.wait()
    measured.wall = time.perf_counter() - started
    return measured


def import_torch() -> float:
    """CPU seconds of `python -c "import torch"`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def left_over() -> tuple[set[int], set[str]]:
    """Processes of engines of this package, and temporary folders."""
    server = str(Path(attn_kata.__file__).with_name("engine") / "server.py")
    processes = {each.pid for each in psutil.process_iter() if server in _command_line(each)}
    return processes, {path.name for path in Path(tempfile.gettempdir()).iterdir()}


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def killed(folder: Path, out: Path, kills: int) -> tuple[int, int]:
    """Kill a run so often, at random instants; the number of results that a later run changed, and of results at the end."""
    chance, changed = random.Random(3), 0
    before: dict[str, bytes] = {}
    for _ in range(kills):
        process = subprocess.Popen(command(folder, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.2, 5.0))
        process.kill()
        process.wait()
        after = results(out / "class.db")
        changed += sum(after.get(name) != report for name, report in before.items())
        before = after
    subprocess.run(command(folder, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = results(out / "class.db")
    changed += sum(after.get(name) != report for name, report in before.items())
    return changed, len(after)


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    processors = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="bench-class-") as name:
        base = Path(name)
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(dir=base)  # so that what is left over is ours
        processes, folders = left_over()
        torch = statistics.median(import_torch() for _ in range(5))
        print(f"{len(processors)} cores; import torch took {torch:.2f} s of CPU\n")
        for only in ("right", "wrong"):
            run = graded(written(base / only, 60, only=only), base / f"{only}-out", {min(processors)})
            print(f"{only}, one core: {run.cpu_each():.3f} s of CPU each, {run.cpu_each() / torch:.3f} × import torch")
        few, mixed = written(base / "few", 60), written(base / "mixed", count)
        one, both = graded(few, base / "one", {min(processors)}), graded(few, base / "both", processors)
        print(f"mixed, one core: {one.cpu_each():.3f} s of CPU and {one.wall_each():.3f} s each")
        print(f"mixed, {len(processors)} cores: {both.cpu_each():.3f} s of CPU and {both.wall_each():.3f} s each")
        print(f"{len(processors)} cores are {one.wall_each() / both.wall_each():.2f} times as quick as one")
        every = graded(mixed, base / "every", processors)
        print(f"{count} submissions took {every.wall:.0f} s, {every.wall_each():.3f} s each")
        early, late = every.memory()
        print(f"memory of the command and its engines: {early:.0f} MiB after {WARM} results, {late:.0f} MiB at the end")
        few_open, many_open = every.descriptors()
        print(f"their open descriptors: {few_open} after {WARM} results, {many_open} at the end")
        size = sum(path.stat().st_size for path in (base / "every").rglob("*") if path.is_file())
        print(
            f"written for each submission: {size / count / 1024:.0f} KiB; exit codes {one.returncode}, {every.returncode}"
        )
        if kills:
            changed, found = killed(mixed, base / "killed", kills)
            print(f"killed {kills} times: {found} of {count} results, {changed} changed by a later run")
        time.sleep(6)
        after_processes, after_folders = left_over()
        tempfile.tempdir = os.environ["TMPDIR"]
        print(f"left over: {len(after_processes - processes)} processes, {len(after_folders - folders)} folders")


if __name__ == "__main__":
    main()
