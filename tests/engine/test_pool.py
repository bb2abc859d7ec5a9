"""The pool of warm engines: one that dies or grows is replaced, and nobody notices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import psutil
import pytest

from attn_kata import catalog
from attn_kata.engine import memory, persistent, pool
from attn_kata.engine.client import EngineFault
from attn_kata.engine.pool import EnginePool

SOURCE = catalog.find("softmax").solution.read_bytes()


@pytest.mark.usefixtures("ready_engines")
def test_an_engine_that_dies_or_grows_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[psutil.Process] = []

    class Recorded(persistent.Engine):
        def __init__(self, **asked: Any) -> None:
            super().__init__(**asked)
            started.append(psutil.Process(self.pid))

    def engine_of_this_process() -> psutil.Process:
        (found,) = (each for each in started if each.is_running() and each.status() != psutil.STATUS_ZOMBIE)
        return found

    monkeypatch.setattr(persistent, "Engine", Recorded)

    def graded() -> bool:
        return engines.grade("softmax", SOURCE, attempt="softmax.py", properties=("values",)).passed

    sizes = iter([100, 100, 100, 100, int(100 * pool.GROWTH) + pool.SLACK, int(100 * pool.GROWTH) + pool.SLACK + 1])
    with EnginePool(1, bound=False) as engines:
        assert graded()
        first = engine_of_this_process()
        os.kill(first.pid, signal.SIGKILL)
        monkeypatch.setattr(memory, "of_process", lambda pid: next(sizes))

        assert graded(), "a new engine grades what the dead one was asked"
        second = engine_of_this_process()
        assert all(graded() for _ in range(pool.WARM))
        assert engine_of_this_process() == second
        assert graded()
        assert not second.is_running(), "it has grown"
        monkeypatch.setattr(memory, "of_process", lambda pid: 100)
        assert graded()
        third = engine_of_this_process()
        engines.end_idle(0.0)
        assert not third.is_running()
    with pytest.raises(EngineFault):
        graded()
    assert memory.of_process(os.getpid()) == 100
    monkeypatch.undo()
    assert (memory.of_process(os.getpid()) or 0) > 10 << 20
    assert memory.of_process(2**22 + 1) == 0


def test_an_engine_has_not_grown_because_it_has_one_more_process() -> None:
    alone = memory.of_process(os.getpid()) or 0
    code = "import sys; held = b'x' * (48 << 20); print('holds', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"holds"
        both = memory.of_process(os.getpid()) or 0
        assert other.stdin is not None
        other.stdin.close()
    assert both < alone + (24 << 20)
