"""A real child, forked and confined, that tries one thing and says how it went."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from attn_kata.sandbox import JAIL, InForce, Plan, Prepared, confine, prepare, release

collect_ignore = ["torch_trials.py"]
DEADLINE = 15.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:  # every test of the run, not of this folder alone
        if sys.platform != "linux" and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="the layers are Linux's"))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the child ended: what the action returned, or the name, errno and text of what it raised."""

    value: Any = None
    error: str = ""
    errno: int = 0
    text: str = ""
    in_force: dict[str, Any]
    status: int


Action = Callable[[], Any]


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is denied to every child, as the folders with katas and solutions are."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "solution.py").write_text("the answer")
    return folder


@pytest.fixture(scope="session")
def prepared(answers: Path) -> Iterator[Prepared]:
    once = prepare(tier=JAIL, denied=[str(answers)])
    yield once
    release(once)


@pytest.fixture
def in_child(prepared: Prepared, tmp_path: Path) -> Callable[..., Outcome]:
    """Run an action in a confined child; `first` runs before anything is prepared, in place of the shared one."""

    def run(
        action: Action,
        *,
        tier: int = 1,
        first: Action | None = None,
        keep: tuple[int, ...] = (),
        folder: Path = tmp_path,
        cpu_seconds: int = 10,
        memory_bytes: int = 1 << 30,
        prepared: Prepared = prepared,
    ) -> Outcome:
        reading, writing = os.pipe()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            report: dict[str, Any] = {"in_force": {}}
            try:
                _silence()
                if first is not None:
                    first()
                    prepared = prepare(tier=tier)
                plan = Plan(
                    tier=tier,
                    keep_descriptors=(writing, *keep),
                    folder=str(folder),
                    cpu_seconds=cpu_seconds,
                    memory_bytes=memory_bytes,
                    file_bytes=0,
                    parent_pid=parent,
                )
                in_force: InForce = confine(plan, prepared)
                report["in_force"] = asdict(in_force)
                report["value"] = action()
            except BaseException as error:
                report.update(error=type(error).__name__, errno=getattr(error, "errno", None) or 0, text=str(error))
            finally:
                os.write(writing, json.dumps(report).encode())
                os._exit(0)
        os.close(writing)
        said = read_to_end(reading)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        return Outcome(**(json.loads(said) if said else {"in_force": {}}), status=status)

    return run


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)


def read_to_end(descriptor: int) -> bytes:
    """Everything until the last writer is gone; fails the test when that takes too long."""
    said, until = b"", time.monotonic() + DEADLINE
    while select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            os.close(descriptor)
            return said
        said += piece
    os.close(descriptor)
    raise AssertionError(f"the child still runs after {DEADLINE} s")


@pytest.fixture
def until_closed() -> Callable[[int], bytes]:
    return read_to_end
