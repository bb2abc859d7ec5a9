"""A class on a dask cluster: real schedulers and workers, one of which is killed, and one that has another version."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from .conftest import KATA, RIGHT, SCALE, Run, source, write_files
from .test_class import _results, summary_of

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="the extra [cluster] is not installed")

DASK = [sys.executable, "-m", "dask"]
SECONDS = 60


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextlib.contextmanager
def started(*arguments: str, folder: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of dask, ended with its children."""
    log = (folder / f"{arguments[0]}.log").open("ab")
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False", **variables}
    process = subprocess.Popen([*DASK, *arguments], cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def address_in(file: Path) -> str:
    """The address that a scheduler writes into its file. It makes the file first and fills it a moment later."""
    wait_until(lambda: file.exists() and file.read_text().endswith("\n}"))
    return str(json.loads(file.read_text())["address"])


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler that was started with its own command."""
    file = tmp_path / "scheduler.json"
    with started("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file), folder=tmp_path):
        yield address_in(file)


def worker(address: str, folder: Path, *more: str, **variables: str) -> contextlib.AbstractContextManager[object]:
    options = ("--nthreads", "1", "--no-dashboard", "--local-directory", str(folder / "dask"), *more)
    return started("worker", address, *options, folder=folder, **variables)


def engines_below(process: int) -> list[psutil.Process]:
    try:
        every = psutil.Process(process).children(recursive=True)
        return [each for each in every if "server.py" in " ".join(each.cmdline())]
    except psutil.NoSuchProcess:
        return []


def test_a_killed_workers_submissions_are_graded_elsewhere_and_another_version_is_refused(
    tmp_path: Path, scheduler: str, run: Run
) -> None:
    from distributed import Client

    count = 20
    work = write_files(tmp_path / "work", {f"subs/s{n:02}.py": f"# {n}\n{source(RIGHT)}" for n in range(count)})
    command = [sys.executable, "-m", "attn_kata", "class", "subs", "--kata", KATA, "--dask", scheduler]
    lonely = run("class", "subs", "--kata", KATA, "--dask", scheduler)
    with worker(scheduler, tmp_path, "--no-nanny") as first, worker(scheduler, tmp_path, "--no-nanny") as second:
        assert isinstance(first, subprocess.Popen)
        assert isinstance(second, subprocess.Popen)
        with Client(scheduler, timeout=SECONDS) as client:
            client.wait_for_workers(2, timeout=SECONDS)
        process = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        database = work / f"{KATA}-class" / "class.db"
        wait_until(lambda: len(_results(database)) >= 2 and engines_below(first.pid))
        orphans = engines_below(first.pid)
        first.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=SECONDS)
        alive = engines_below(second.pid)

        assert process.returncode == 0, errors.decode()
        assert len(_results(database)) == count == len(summary_of(database.parent))
        assert {student["verdict"] for student in summary_of(database.parent).values()} == {"passed"}
        assert alive, "the engine of the other worker stays warm"
        psutil.wait_procs(orphans, 10)
        assert not any(each.is_running() for each in orphans), "an engine ends with its worker"
    psutil.wait_procs(alive, 10)
    assert not any(each.is_running() for each in alive)

    write_files(tmp_path / "patch", {"sitecustomize.py": "import attn_kata\nattn_kata.__version__ = '0.0.9'\n"})
    with worker(scheduler, tmp_path, "--no-nanny", PYTHONPATH=str(tmp_path / "patch")):
        with Client(scheduler, timeout=SECONDS) as client:
            client.wait_for_workers(1, timeout=SECONDS)
        refused = run("class", "subs", "--kata", KATA, "--dask", scheduler, "--out", "other")

    assert (lonely.returncode, refused.returncode) == (2, 2), refused.stderr
    assert "has no worker" in lonely.stderr
    assert "the worker has attn-kata 0.0.9, torch" in refused.stderr
    assert "this command has attn-kata 0.1.0, torch" in refused.stderr
    assert _results(work / "other" / "class.db") == {}


@pytest.mark.parametrize("role", ["worker", "scheduler"])
def test_a_run_ends_with_what_is_graded_when_the_only_worker_or_the_scheduler_is_lost(
    tmp_path: Path, role: str
) -> None:
    from distributed import Client

    count = 40
    work = write_files(tmp_path / "work", {f"subs/s{n:02}.py": f"# {n}\n{source(RIGHT)}" for n in range(count)})
    file = tmp_path / "scheduler.json"
    options = ("--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    with started("scheduler", *options, folder=tmp_path) as scheduler:
        address = address_in(file)
        with worker(address, tmp_path, "--no-nanny") as only:
            with Client(address, timeout=SECONDS) as client:
                client.wait_for_workers(1, timeout=SECONDS)
            command = [sys.executable, "-m", "attn_kata", "class", "subs", "--kata", KATA, "--dask", address]
            process = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            database = work / f"{KATA}-class" / "class.db"
            wait_until(lambda: _results(database))
            lost = only if role == "worker" else scheduler
            assert isinstance(lost, subprocess.Popen)
            lost.send_signal(signal.SIGKILL)
            _, errors = process.communicate(timeout=SECONDS)

    assert process.returncode == 2, errors.decode()
    assert f"The dask scheduler at '{address}' " in errors.decode()
    assert "What is graded is kept." in errors.decode()
    assert "Traceback" not in errors.decode(), errors.decode()
    assert 0 < len(_results(database)) < count


def test_a_local_cluster_of_processes_gives_the_same_results_as_the_local_pool(tmp_path: Path, run: Run) -> None:
    from distributed import LocalCluster

    write_files(tmp_path / "work", {f"subs/{name}.py": source(name) for name in (RIGHT, SCALE)})
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None, "local_directory": str(tmp_path)}
    with LocalCluster(processes=True, **options) as cluster:
        there = run(
            "class", "subs", "--kata", KATA, "--seed", "5", "--dask", cluster.scheduler_address, "--out", "there"
        )
    here = run("class", "subs", "--kata", KATA, "--seed", "5", "--out", "here")
    found = [summary_of(tmp_path / "work" / name) for name in ("there", "here")]
    for students in found:
        for student in students.values():
            del student["seconds"]

    assert there.returncode == here.returncode == 0, there.stderr
    assert found[0] == found[1]
