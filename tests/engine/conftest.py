"""Engines of both kinds: forking, and spawning as where fork is not to be had."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from attn_kata import resources
from attn_kata.engine import client
from attn_kata.engine.client import Engine

RIGHT = "def scaled_dot_product_attention(q, k, v):\n    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v\n"


@pytest.fixture(scope="module")
def spawning() -> Iterator[Engine]:
    """An engine as where fork is not to be had, that is kept for the module."""
    with Engine(_role="spawning") as running:
        yield running


@pytest.fixture(scope="module")
def warm(ready: Any) -> Iterator[Engine]:
    """An engine that is kept for the module, of the kind that this system has. It has loaded torch already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "subprocess", ready.engines())
        running = Engine()
    with running:
        running.wait_until_ready()
        yield running


@pytest.fixture
def reference() -> bytes:
    return (resources.solutions_folder() / "sdpa.py").read_bytes()


@pytest.fixture
def right() -> str:
    return RIGHT


@pytest.fixture
def gone() -> Callable[..., None]:
    """`gone(processes, within=1.0)`: fails unless all of them end in time."""

    def check(processes: list[psutil.Process], *, within: float = 1.0) -> None:
        _, alive = psutil.wait_procs(processes, timeout=within)
        # A process whose parent does not look is a zombie, and as good as gone.
        alive = [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
        assert alive == []

    return check


@pytest.fixture
def face(ready: Any) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`face(source, role)`: a process with an engine that grades `source`.

    It prints the engine's process id and folder, then "ready" once it is, where it waits for that. With `loaded`, the engine
    has loaded torch already.
    """
    started: list[subprocess.Popen[str]] = []
    script = textwrap.dedent("""
        import sys
        from attn_kata.engine.client import Engine

        with Engine(_role=sys.argv[2]) as engine:
            print(engine._process.pid, engine._folder, flush=True)
            if sys.argv[3] == "ready":
                engine.wait_until_ready()
                print("ready", flush=True)
            engine.grade("sdpa", sys.argv[1].encode(), attempt="sdpa.py", call_seconds=30, timeout=30)
    """)

    def start(source: str, role: str, wait: str = "ready", *, loaded: bool = False) -> subprocess.Popen[str]:
        command = ready.script(script) if loaded else [sys.executable, "-c", script]
        process = subprocess.Popen(
            [*command, source, role, wait],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def eventually() -> Callable[..., None]:
    """`eventually(condition, within=5.0)`: fails unless it holds in time."""

    def check(condition: Callable[[], bool], *, within: float = 5.0) -> None:
        until = time.monotonic() + within
        while not (held := condition()) and time.monotonic() < until:
            time.sleep(0.01)
        assert held

    return check
