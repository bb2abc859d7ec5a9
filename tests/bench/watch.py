"""From a save to the verdict on the screen of `attn-kata watch`, and whether many gradings leave anything behind."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
import psutil

from attn_kata.catalog import find


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What the processes of one `watch` hold: their number, descriptors, MiB (USS, all together), temporary files."""

    processes: int
    descriptors: int
    memory: float
    files: int


@dataclass(kw_only=True)
class Watch:
    """A running `watch` of mha in a terminal of its own."""

    child: pexpect.spawn
    file: Path
    temporary: Path
    source: str
    saves: int = 0
    shown: bytes = field(default=b"")

    def save(self) -> float:
        """Save a version that no one has seen, by rename; seconds until its verdict is on the screen."""
        self.saves += 1
        beside = self.file.with_name(".new")
        beside.write_text(f"{self.source}\n# {self.saves}\n", "utf-8")
        started = time.perf_counter()
        os.replace(beside, self.file)
        self.until(self.saves + 1)
        return time.perf_counter() - started

    def until(self, gradings: int) -> None:
        """Wait for the verdict of the grading of this number."""
        said = re.compile(rf"Graded in [\d.]+ s, {gradings} so far".encode())
        while not said.search(self.shown):
            try:
                self.shown = (self.shown + self.child.read_nonblocking(65536, 5))[-200_000:]
            except pexpect.TIMEOUT:
                raise RuntimeError(f"no verdict: {self.shown[-2000:]!r}") from None
        self.shown = b""

    def kept(self) -> Kept:
        """What it holds once nothing goes on."""
        face = psutil.Process(self.child.pid)
        while True:
            time.sleep(0.6)
            family = [face, *face.children(recursive=True)]
            if len(family) == 5:  # face, engine, template, and the two children that wait
                break
        return Kept(
            processes=len(family),
            descriptors=sum(one.num_fds() for one in family),
            memory=sum(one.memory_full_info().uss for one in family) / 2**20,
            files=sum(1 for _ in self.temporary.rglob("*")),
        )


@contextmanager
def watching(folder: Path) -> Iterator[Watch]:
    """`attn-kata watch` on the reference of mha, past its first grading and warm."""
    kata = find("mha")
    temporary = folder / "tmp"
    temporary.mkdir()
    file = folder / "mha.py"
    source = kata.solution.read_text("utf-8")
    file.write_text(source, "utf-8")
    environment = {
        **os.environ,
        "ATTN_KATA_HOME": str(folder / "home"),
        "TMPDIR": str(temporary),
        "TERM": "xterm-256color",
    }
    command = ["-m", "attn_kata", "watch", "mha.py"]
    child = pexpect.spawn(sys.executable, command, cwd=str(folder), env=environment, dimensions=(24, 80), timeout=120)
    watch = Watch(child=child, file=file, temporary=temporary, source=source)
    try:
        watch.until(1)
        watch.kept()
        time.sleep(2)
        yield watch
    finally:
        child.send("q")
        child.expect(pexpect.EOF)
        child.close()
