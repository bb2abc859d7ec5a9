"""Processes that begin where loading has ended: a template loads the modules once, and forks for everyone who asks.

A new Python that imports torch computes for more than a second, and one that imports the command line for a tenth of one.
The tests start hundreds of both. What a template forks is a process of its own, with its own streams, folder and environment,
and runs the same code from the same place on. Where a test asks about the start itself (what is imported, Python's own
variables, signals, terminals), it starts a new Python.

Run as a script, this file is a template: `python ready.py command SOCKET`, or `python -I ready.py engine SOCKET FOLDER ...`;
or a new Python with the engines of a template, `python ready.py face TEMPLATE ARGUMENT ...` and `script TEMPLATE TEXT ...`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, NoReturn

HERE = hasattr(os, "pidfd_open")  # on Linux; elsewhere everything starts a new Python
NEEDED_BY_FEW = ("player", "room", "cluster")  # of the rooms of attn-kata: what imports textual or dask


class Process:
    """What a template forked; as much of `subprocess.Popen` as attn-kata's client of the engine needs."""

    def __init__(self, template: Path, streams: Sequence[int], told: Mapping[str, Any]) -> None:
        self.args = told.get("arguments")
        self.stdin: BinaryIO | None = None
        self.stdout: BinaryIO | None = None
        self.returncode: int | None = None
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._line.connect(str(template))
        body = json.dumps(told).encode()  # ASCII, where what is no Unicode is \udcff
        socket.send_fds(self._line, [len(body).to_bytes(4, "little")], list(streams))
        self._line.sendall(body)
        self.pid = int.from_bytes(self._received(), "little", signed=True)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.args), timeout or 0.0)
            self.returncode = int.from_bytes(self._received(), "little", signed=True)
            self._line.close()
        return self.returncode

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _received(self) -> bytes:
        told = self._line.recv(4)
        if len(told) != 4:
            raise RuntimeError("the template has ended")
        return told


class Templates:
    """A template for commands and one for engines. They end when this process does."""

    def __init__(self, folder: Path) -> None:
        from attn_kata.engine import client

        self._command, self._engine = folder / "command", folder / "engine"
        self._environment = {name: os.environ[name] for name in client.KEPT_ENVIRONMENT if name in os.environ}
        self._folders = client._import_folders()
        self._started = []
        if not HERE:
            return
        self._started = [
            _started([sys.executable, __file__, "command", str(self._command)], dict(os.environ)),
            _started([sys.executable, "-I", __file__, "engine", str(self._engine), *self._folders], self._environment),
        ]

    def close(self) -> None:
        for process, lifeline in self._started:
            lifeline.close()
            process.wait()

    def engines(self) -> SimpleNamespace:
        """In place of `subprocess` in the client of the engine: engines like this process's own come of the template."""
        return _engines(self._engine, self._environment, self._folders)

    def face(self, *arguments: str) -> list[str]:
        """A command line for a new Python that runs this command of attn-kata, and has its engines of the template."""
        return [sys.executable, __file__, "face", self._told(), *arguments]

    def script(self, text: str, *arguments: str) -> list[str]:
        """A command line for a new Python that runs this text, as `python -c` does, and has its engines of the template."""
        return [sys.executable, __file__, "script", self._told(), text, *arguments]

    def _told(self) -> str:
        return json.dumps([str(self._engine), self._environment, self._folders])

    def run(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], lines: str = "", timeout: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run one command of attn-kata to its end, as `subprocess.run` does with `python -m attn_kata`."""
        told = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env), "engine": json.loads(self._told())}
        new = [sys.executable, "-m", "attn_kata", *arguments]
        return self._ended(self._command, told, new, lines=lines, timeout=timeout)

    def run_with_torch(
        self, text: str, *arguments: str, cwd: Path, lines: str = "", timeout: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run this text to its end, as `python -c` does, where torch is imported already, and what an engine imports."""
        told = {"text": text, "arguments": list(arguments), "cwd": str(cwd), "env": dict(os.environ)}
        new = [sys.executable, "-c", text, *arguments]
        return self._ended(self._engine, told, new, lines=lines, timeout=timeout)

    def _ended(
        self, template: Path, told: Mapping[str, Any], new: list[str], *, lines: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """What this template's process printed when it has ended; `new` is the same in a new Python."""
        if not HERE:
            options: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "check": False}
            return subprocess.run(new, cwd=told["cwd"], env=told["env"], input=lines, timeout=timeout, **options)
        with tempfile.TemporaryFile() as typed, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as warned:
            typed.write(lines.encode())
            typed.seek(0)
            streams = [file.fileno() for file in (typed, said, warned)]
            process = Process(template, streams, told)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            printed = []
            for file in (said, warned):
                file.seek(0)
                printed.append(file.read().decode().replace("\r\n", "\n"))
        return subprocess.CompletedProcess(list(told["arguments"]), code, *printed)


@contextlib.contextmanager
def templates() -> Iterator[Templates]:
    """Both templates, in a folder of their own whose name is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ready-") as folder:
        running = Templates(Path(folder))
        try:
            yield running
        finally:
            running.close()


def _started(arguments: list[str], environment: dict[str, str]) -> tuple[subprocess.Popen[bytes], BinaryIO]:
    """A template that listens, and the pipe that it ends with."""
    address = Path(next(part for part in arguments if part.endswith(("/command", "/engine"))))
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(address))
    listening.listen(64)  # who asks before the modules are loaded waits
    os.set_inheritable(listening.fileno(), True)
    variables = {**environment, "READY_SOCKET": str(listening.fileno())}
    process = subprocess.Popen(
        arguments, stdin=subprocess.PIPE, env=variables, pass_fds=[listening.fileno()], cwd=address.parent
    )
    listening.close()
    assert process.stdin is not None
    return process, process.stdin  # type: ignore[return-value]


def _engines(template: Path, environment: dict[str, str], folders: list[str]) -> SimpleNamespace:
    def popen(arguments: list[str], **asked: Any) -> Any:
        role, *theirs = arguments[3:]
        if not HERE or role != "engine" or theirs != folders or asked["env"] != environment:
            return subprocess.Popen(arguments, **asked)
        requests, ours_to_write = os.pipe()
        ours_to_read, reports = os.pipe()
        try:
            told = {"arguments": arguments, "cwd": str(asked["cwd"])}
            process = Process(template, [requests, reports, asked["stderr"].fileno()], told)
        finally:
            os.close(requests)
            os.close(reports)
        process.stdin, process.stdout = os.fdopen(ours_to_write, "wb", 0), os.fdopen(ours_to_read, "rb")
        return process

    return SimpleNamespace(Popen=popen, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)


# In a template -------------------------------------------------------------------------------------------------------


def _forked_for_the_next() -> dict[str, Any]:
    """Fork for everyone who asks. Returns in the fork, with what it was asked for; the template itself never returns."""
    listening = socket.socket(fileno=int(os.environ.pop("READY_SOCKET")))
    running: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for ready in select.select([0, listening, *running], [], [])[0]:
            if ready == 0:  # nothing is ever written: whoever started the template has ended
                os._exit(0)
            if ready is not listening:
                child, line = running.pop(ready)
                os.close(ready)
                _tell(line, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
                line.close()
                continue
            line = listening.accept()[0]
            head, streams, _, _ = socket.recv_fds(line, 4, 3)
            size = int.from_bytes(head, "little")
            body = line.recv(size, socket.MSG_WAITALL)
            if len(streams) == 3 and len(body) == size > 0:  # else, who asked was killed while it did
                child = os.fork()
                if not child:
                    for other in (listening, line, *(each for _, each in running.values())):
                        other.close()
                    for descriptor in running:
                        os.close(descriptor)
                    return _moved(streams, json.loads(body))
                running[os.pidfd_open(child)] = child, line
                _tell(line, child)
            else:
                line.close()
            for stream in streams:
                os.close(stream)


def _moved(streams: Sequence[int], told: dict[str, Any]) -> dict[str, Any]:
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    os.chdir(told["cwd"])
    return told


def _tell(line: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # who asked may have been killed
        line.sendall(number.to_bytes(4, "little", signed=True))


def _serve_commands(address: str) -> NoReturn:
    del sys.path[0]  # this file's own folder
    _load_what_commands_load()
    gc.freeze()  # a collection in a fork would copy every page
    told = _forked_for_the_next()
    _take_surroundings_of(told, "attn-kata")
    with _ended_at_once():
        _run_the_command(told["engine"])


@contextlib.contextmanager
def _ended_at_once() -> Iterator[None]:
    """Whoever exits ends here, where Python would take every loaded module apart: that takes longer than most commands."""
    try:
        yield
    except SystemExit as end:
        threading._shutdown()  # type: ignore[attr-defined]  # what Python does at its end for threads,
        atexit._run_exitfuncs()  # and for whoever asked for it
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        code = end.code
        if code is not None and not isinstance(code, int):
            raise
        os._exit(code or 0)


def _take_surroundings_of(told: Mapping[str, Any], name: str) -> None:
    os.environ.clear()
    os.environ.update(told["env"])
    time.tzset()
    sys.argv = [name, *told["arguments"]]
    for number, (stream, mode, buffering) in enumerate((("stdin", "r", -1), ("stdout", "w", -1), ("stderr", "w", 1))):
        before = getattr(sys, stream)  # the locale, which says how to encode, is the same
        setattr(sys, stream, os.fdopen(number, mode, buffering, encoding=before.encoding, errors=before.errors))


def _load_what_commands_load() -> None:
    """The modules that a command imports when it needs them: once here, and not in every fork."""
    for room in ("cli", "engine.client", "report", "rounds", "interview", "classroom", "watch"):
        module = importlib.import_module(f"attn_kata.{room}")
        for below in pkgutil.iter_modules(getattr(module, "__path__", ())):
            if below.name not in NEEDED_BY_FEW:
                importlib.import_module(f"{module.__name__}.{below.name}")


def _be_a_face(template: str, *arguments: str) -> NoReturn:
    del sys.path[0]
    sys.argv = ["attn-kata", *arguments]
    _run_the_command(json.loads(template))


def _run_a_script(template: str, text: str, *arguments: str) -> None:
    del sys.path[0]
    sys.argv = ["-c", *arguments]
    _take_engines_of(json.loads(template))
    exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})


def _run_the_command(template: tuple[str, dict[str, str], list[str]]) -> NoReturn:
    from attn_kata import cli

    _take_engines_of(template)
    sys.exit(cli.main())


def _take_engines_of(template: tuple[str, dict[str, str], list[str]]) -> None:
    from attn_kata.engine import client

    address, environment, folders = template
    client.subprocess = _engines(Path(address), environment, folders)  # type: ignore[attr-defined]


def _serve_engines(address: str, *folders: str) -> None:
    gc.disable()  # as in an engine
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, folders[0])
    from attn_kata.engine import server

    server._import_from(*folders)
    server._import_torch()
    from attn_kata.engine import fork_server

    told = _forked_for_the_next()
    if "text" in told:
        gc.freeze()
        gc.enable()
        _take_surroundings_of(told, "-c")
        with _ended_at_once():
            exec(compile(told["text"], "<string>", "exec"), {"__name__": "__main__"})
            sys.exit()
    os.setsid()
    server._serve_and_exit(fork_server.ForkServer(requests=0, reports=1).serve)


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {
        "command": _serve_commands,
        "engine": _serve_engines,
        "face": _be_a_face,
        "script": _run_a_script,
    }
    roles[sys.argv[1]](*sys.argv[2:])
