"""Grades on a dask cluster: `distributed` schedules, moves and retries. Every worker keeps warm engines in a plugin.

A job is the source's bytes, and comes back as a report. A worker whose kata files or versions differ from the client's refuses.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import CancelledError, Future
from dataclasses import asdict
from types import TracebackType
from typing import Any

from attn_kata import catalog
from attn_kata.classroom import grading
from attn_kata.classroom.setting import Setting, Version, too_weak, version_here
from attn_kata.engine.client import TooWeak
from attn_kata.engine.pool import EnginePool
from attn_kata.errors import UsageError

try:
    from distributed import Client, Worker, WorkerPlugin, get_worker
except ImportError as missing:
    raise UsageError(
        "--dask needs the package 'distributed', which is not installed.",
        next_step='Install it: python -m pip install "attn-kata[cluster]"',
    ) from missing

PLUGIN = "attn-kata engines"
CONNECT_SECONDS = 5
IDLE_SECONDS = 60.0  # then a worker ends its engines; they start again when they are needed
LONELY_SECONDS = 15.0  # without any worker: a nanny starts one anew in less
AHEAD = 2  # submissions for each thread of the cluster, so that no worker waits for the client


class VersionsDiffer(Exception):
    """A worker's kata files or versions are not the client's. The text names both, and the worker."""


class WorkerTooWeak(Exception):
    """A worker cannot isolate other people's code. The text says what is missing."""


class Engines(WorkerPlugin):
    """The warm engines of one worker: at most one for each of its threads."""

    name = PLUGIN
    idempotent = True  # two clients share them
    pool: EnginePool

    def setup(self, worker: Worker) -> None:
        self.pool = EnginePool(worker.state.nthreads, bound=False)
        self._closed = threading.Event()
        threading.Thread(target=self._end_idle, name=PLUGIN, daemon=True).start()

    def teardown(self, worker: Worker) -> None:
        self._closed.set()
        self.pool.close()

    def _end_idle(self) -> None:
        while not self._closed.wait(IDLE_SECONDS / 4):
            self.pool.end_idle(IDLE_SECONDS)


def grade_on_worker(setting: dict[str, Any], code: bytes, name: str) -> dict[str, Any]:
    """Runs on a worker. Raises VersionsDiffer, and what `grading.grade` raises."""
    wanted = Setting(**{**setting, "version": Version(**setting["version"])})
    check_version(wanted)
    try:
        return grading.grade(_pool(), wanted, code, name)
    except TooWeak as weak:
        raise WorkerTooWeak(str(weak)) from None


def _pool() -> EnginePool:
    engines = get_worker().plugins[PLUGIN]
    assert isinstance(engines, Engines)
    return engines.pool


def check_version(setting: Setting) -> None:
    """Raises VersionsDiffer where this machine is not like the client's."""
    try:
        here = str(version_here(catalog.find(setting.kata)))
    except UsageError as problem:  # it does not have this kata
        here = problem.what
    if here != str(setting.version):
        raise VersionsDiffer(f"the worker has {here}; this command has {setting.version}")


def versions_of_worker(setting: dict[str, Any]) -> str:
    """Runs on a worker: what is wrong with its versions, or ""."""
    try:
        check_version(Setting(**{**setting, "version": Version(**setting["version"])}))
    except VersionsDiffer as differ:
        return str(differ)
    return ""


class ClusterMap:
    """Grades on the workers of the scheduler at `address`. Raises UsageError if there is none, or if a worker differs."""

    def __init__(self, address: str, setting: Setting) -> None:
        self._address = address
        self._setting = asdict(setting)
        self._lonely_since: float | None = None
        for name in ("client", "core", "utils"):  # a lost scheduler is told below, in one sentence
            logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL)
        try:
            connect: Any = Client  # it has no types
            self._client = connect(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as problem:
            raise UsageError(
                f"There is no dask scheduler at '{address}' ({_first_line(problem)}).",
                next_step="Start one with: dask scheduler. It prints its address",
            ) from problem
        try:
            self._check_workers()
            self._client.register_plugin(Engines())
            self._executor = self._client.get_executor(pure=False)
        except BaseException:
            self._client.close()
            raise

    def _check_workers(self) -> None:
        try:
            told: dict[str, str] = self._client.run(versions_of_worker, self._setting)
        except Exception as problem:  # whatever a worker raises that cannot even import this module
            raise UsageError(
                f"A worker cannot run attn-kata: {_first_line(problem)}.",
                next_step=f"Install it there: python -m pip install attn-kata=={self._setting['version']['attn_kata']}",
            ) from problem
        if not told:
            raise UsageError(
                f"The dask scheduler at '{self._address}' has no worker.",
                next_step=f"Start one with: dask worker {self._address} --nthreads 1",
            )
        for worker, differs in told.items():
            if differs:
                raise _refusal(f"The worker at '{worker}' is not used: {differs}.")

    def width(self) -> int:
        """How many submissions to hand out at a time."""
        return max(1, AHEAD * sum(self._threads().values()))

    def _threads(self) -> dict[str, int]:
        """The threads of each worker; empty without a scheduler."""
        try:
            return dict(self._client.nthreads()) if self._client.status == "running" else {}
        except (OSError, TimeoutError):  # it was lost a moment ago
            return {}

    def submit(self, code: bytes, name: str) -> Future[dict[str, Any]]:
        """Begin to grade on some worker. A job of a lost worker is done again elsewhere."""
        try:
            future: Future[dict[str, Any]] = self._executor.submit(grade_on_worker, self._setting, code, name)
        except (OSError, TimeoutError) as problem:
            raise self._scheduler_lost() from problem
        return future

    def failed(self, problem: BaseException) -> UsageError | None:
        """The error that ends the run, if this problem is not that of one submission."""
        if isinstance(problem, VersionsDiffer):
            return _refusal(f"A worker was refused: {problem}.")
        if isinstance(problem, WorkerTooWeak):
            return too_weak(f"It is a worker of the cluster. {problem}")
        if self._client.status != "running" or isinstance(problem, CancelledError):
            return self._scheduler_lost()
        return None

    def _scheduler_lost(self) -> UsageError:
        return UsageError(
            f"The dask scheduler at '{self._address}' was lost.",
            next_step="What is graded is kept. Start a scheduler, and give the same command again",
        )

    def lost(self) -> UsageError | None:
        """The error that ends the run once there has been no worker, or no scheduler, for LONELY_SECONDS."""
        now = time.monotonic()
        if self._threads():
            self._lonely_since = None
            return None
        self._lonely_since = self._lonely_since or now
        if now - self._lonely_since < LONELY_SECONDS:
            return None
        return UsageError(
            f"The dask scheduler at '{self._address}' has had no worker for {LONELY_SECONDS:g} seconds.",
            next_step="What is graded is kept. Start a worker, and give the same command again",
        )

    def __enter__(self) -> ClusterMap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._executor.shutdown(wait=False)
        self._client.close()


def _refusal(what: str) -> UsageError:
    return UsageError(what, next_step="Install the same versions there, and start the worker again")


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]
