"""The face's side of the engine: starts it, asks it for gradings, ends it. Imports no torch."""

from __future__ import annotations

import contextlib
import importlib.machinery
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job, Message
from attn_kata.report.model import Report

# The engine gets only these variables of the caller: enough to start, and nothing that changes Python, pytest or torch.
KEPT_ENVIRONMENT = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
DEFAULT_TIER = 1 if sys.platform == "linux" else 0
START_SECONDS = 120.0
MARGIN_SECONDS = 20.0  # the engine gets this much more than the grading's own time
CALL_SECONDS = 10.0


_M = TypeVar("_M", bound=Message)


class EngineFault(Exception):
    """The engine failed: this is a bug in attn-kata. `details` is for the person who fixes it."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class GradingCancelled(Exception):
    """The grading was dropped by `Engine.cancel`."""


class TooWeak(Exception):
    """The isolation is weaker than `least_tier`, so the attempt was not run. `notes` say what is missing."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(" ".join(notes))
        self.notes = notes


class Engine:
    """A running engine. The constructor starts its process at once, so that torch loads while the caller continues.

    It is a context manager: leaving it ends the engine and all its children.
    """

    def __init__(self, *, tier: int | None = None, _role: str = "engine") -> None:
        self._tier = tier if tier is not None else DEFAULT_TIER
        self._sending = threading.Lock()
        self._grading = False
        self._folder = Path(tempfile.mkdtemp(prefix="attn-kata-"))
        self._log = self._folder / "engine.log"
        script = Path(__file__).with_name("server.py")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(script), _role, *_import_folders()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                env={name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ},
                start_new_session=True,  # the face handles Ctrl-C
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._reports = self._process.stdout.fileno()
        self._ready = False

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the engine, its children and its temporary folder."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            self._process.wait(5)  # it ends when its standard input closes, and it ends its children
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """The id of the engine's process."""
        return self._process.pid

    def wait_until_ready(self) -> None:
        """Wait until torch is loaded. Raises EngineFault."""
        if not self._ready:
            self._expect(messages.Ready, START_SECONDS)
            self._ready = True

    def grade(
        self,
        slug: str,
        source: bytes,
        *,
        attempt: str,
        seed: int = 0,
        timeout: float = 60.0,
        properties: tuple[str, ...] = (),
        diagnose: bool = True,
        call_seconds: float = CALL_SECONDS,
        least_tier: int = 0,
        reads: bool = False,
        flags: tuple[str, ...] = (),
    ) -> Report:
        """Grade one attempt's source.

        Raises EngineFault if the engine fails, and GradingCancelled after `cancel`. Raises TooWeak, before the attempt is
        run, if the isolation is weaker than `least_tier`.
        `attempt` is the name that the report shows. `timeout` is in seconds for the whole grading, `call_seconds` for one
        call. `properties` names the properties to test; those that they need are tested too. An empty tuple means all.
        With `reads`, code by other names than the contract's is read as it is, as `flags` (KEY=VALUE) say.
        """
        from attn_kata import resources

        started = time.perf_counter()
        katas, solutions = str(resources.katas_folder()), str(resources.solutions_folder())
        job = Job(
            slug=slug,
            katas=katas,
            solutions=solutions,
            attempt=attempt,
            seed=seed,
            timeout=timeout,
            call_seconds=call_seconds,
            properties=properties,
            diagnose=diagnose,
            tier=self._tier,
            least_tier=least_tier,
            denied=(katas, solutions),
            reads=reads,
            flags=flags,
        )
        try:
            with self._sending:
                channel.send(self._requests, messages.Grade(job=job))
                channel.send(self._requests, messages.Source(source=source))
                self._grading = True
        except channel.ChannelClosed as error:
            raise self._fault("the engine ended before the grading began") from error
        try:
            self.wait_until_ready()
            loaded = time.perf_counter()
            body = self._expect(messages.Graded, timeout + MARGIN_SECONDS).report
        finally:
            with self._sending:
                self._grading = False
        body["seconds"] = {**body["seconds"], "load": loaded - started, "total": time.perf_counter() - started}
        return Report.from_dict(body)

    def cancel(self) -> None:
        """Cancel the running grading, from another thread: its `grade` raises GradingCancelled, and the engine stays usable.

        Does nothing if no grading runs. A grading that ends at this moment still returns its report.
        """
        with self._sending, contextlib.suppress(channel.ChannelClosed):
            if self._grading:
                channel.send(self._requests, messages.Cancel())

    def _expect(self, wanted: type[_M], seconds: float) -> _M:
        deadline = time.monotonic() + seconds
        watchdog = _Watchdog(self._process, deadline)
        try:
            with watchdog:
                message = channel.receive(self._reports)
        except channel.ChannelClosed as error:
            if watchdog.fired:
                raise self._fault(f"the engine did not answer within {seconds:g} s") from error
            raise self._fault("the engine ended without an answer") from error
        if isinstance(message, wanted):
            return message
        if isinstance(message, messages.Cancelled):
            raise GradingCancelled("the grading was cancelled")
        if isinstance(message, messages.IsolationTooWeak):
            raise TooWeak(list(message.notes))
        if isinstance(message, messages.Fault):
            last_line = message.text.strip().splitlines()[-1] if message.text.strip() else "the grader failed"
            raise EngineFault(last_line, message.text)
        raise self._fault(f"the engine answered {type(message).__name__}")

    def _fault(self, message: str) -> EngineFault:
        with contextlib.suppress(OSError):
            return EngineFault(message, self._log.read_text("utf-8", "replace")[-8000:])
        return EngineFault(message)


class _Watchdog:
    """Kills a process at a deadline, so that a blocked read from it returns."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        self.fired = False
        self._process = process
        self._timer = threading.Timer(max(0.0, deadline - time.monotonic()), self._fire)
        self._timer.daemon = True

    def _fire(self) -> None:
        self.fired = True
        self._process.kill()

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _import_folders() -> list[str]:
    """The folders that hold attn-kata and torch. The engine needs them because it starts without the caller's path."""
    ours = Path(__file__).resolve().parents[2]
    # Never use the current folder, even if it is on the path: beside the attempt there may be another torch/.
    here = _current_folder()
    path = [entry for entry in sys.path if os.path.isabs(entry) and os.path.realpath(entry) != here]
    found = importlib.machinery.PathFinder.find_spec("torch", path)
    if found is None or found.origin is None:
        raise EngineFault('torch is not installed; install it with: python -m pip install "torch>=2.4"')
    return [str(ours), str(Path(found.origin).parents[1])]


def _current_folder() -> str | None:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:  # it was removed
        return None
