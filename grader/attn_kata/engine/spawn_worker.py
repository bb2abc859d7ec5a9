"""The work of the spawned children: a grader and an attempt process, each a fresh process that has just loaded torch."""

from __future__ import annotations

import contextlib
import gc
import hmac
import os
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from attn_kata import sandbox
from attn_kata.attempt import child
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.grading.connection import START_SECONDS, ConfinementFailed, Ended, TooWeak
from attn_kata.properties.failures import AttemptDied
from attn_kata.protocol import channel, messages

LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 32
CONNECT_SECONDS = 10.0

ATTEMPT_CPU_SECONDS = 120
ATTEMPT_MEMORY = 2 << 30
ATTEMPT_FILES = 1 << 20


def run_grader() -> NoReturn:
    """Read one job from standard input, grade it, and send the report on standard output."""
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)  # prints go to the log, not between the messages
    try:
        sandbox.guard_engine(os.getppid())
        channel.send(answers, messages.Ready())
        asked, message = channel.receive(requests), channel.receive(requests)
        assert isinstance(asked, messages.Grade)
        assert isinstance(message, messages.Source)
        gc.enable()
        from attn_kata.grading.grade import grade

        report = grade(asked.job, message.source, SpawnLauncher(requests, answers))
        channel.send(answers, messages.Graded(report=report.to_dict()))
    except channel.ChannelClosed:
        pass  # the engine is gone
    except TooWeak as error:
        channel.send(answers, messages.IsolationTooWeak(notes=error.notes))
    except ConfinementFailed as error:
        channel.send(answers, messages.Fault(text=str(error)))
    except BaseException:
        with contextlib.suppress(Exception):
            channel.send(answers, messages.Fault(text=traceback.format_exc()))
    finally:
        os._exit(0)


def run_attempt() -> NoReturn:
    """Read the grader's port from standard input, connect to it, confine this process to tier 0, and serve."""
    try:
        lifeline = os.dup(0)
        where = channel.receive(0)
        assert isinstance(where, messages.Join)
        line = socket.create_connection((LOOPBACK, where.port), timeout=CONNECT_SECONDS)
        line.settimeout(None)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.sendall(bytes.fromhex(where.token))
    except (channel.ChannelClosed, OSError):
        os._exit(1)  # the grader stops waiting after a while
    plan = sandbox.Plan(
        tier=sandbox.PRACTICE,
        keep_descriptors=(line.fileno(), lifeline),
        folder=where.folder,
        cpu_seconds=ATTEMPT_CPU_SECONDS,
        memory_bytes=ATTEMPT_MEMORY,
        file_bytes=ATTEMPT_FILES,
        parent_pid=where.engine,
    )

    def confine() -> sandbox.InForce:
        force = sandbox.confine(plan, sandbox.prepare(tier=sandbox.PRACTICE))
        # Not every system kills a child with its parent. But standard input closes when the engine ends.
        threading.Thread(target=_exit_with_engine, args=(lifeline,), daemon=True).start()
        return force

    child.run(child.SocketStream(line), None, confine)


ROLES: dict[str, Callable[[], NoReturn]] = {"grader": run_grader, "attempt": run_attempt}


class SpawnLauncher:
    """Starts attempt processes for a grader: the engine spawns them, and they connect to a local port."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, answers

    def start(self) -> Endpoints:
        token = secrets.token_bytes(TOKEN_BYTES)
        with socket.create_server((LOOPBACK, 0)) as listener:
            port = listener.getsockname()[1]
            channel.send(self._answers, messages.NewAttempt(port=port, token=token.hex()))
            return Endpoints(channel=_accept(listener, token), output=None)

    def end(self, *, patient: bool) -> Ended:  # the engine always waits a moment here, with or without `patient`
        channel.send(self._answers, messages.EndAttempt(patient=patient))
        message = channel.receive(self._requests)
        assert isinstance(message, messages.AttemptEnded)
        return Ended(how=message.how, printed=message.printed)


def _accept(listener: socket.socket, token: bytes) -> socket.socket:
    """Accept the connection that sends the token. Other local processes may connect too; they are disconnected."""
    deadline = time.monotonic() + START_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        listener.settimeout(left)
        try:
            connected, _ = listener.accept()
            connected.settimeout(min(1.0, left))
            said = b""
            while len(said) < TOKEN_BYTES and (part := connected.recv(TOKEN_BYTES - len(said))):
                said += part
            if hmac.compare_digest(said, token):
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connected
            connected.close()
        except OSError:
            continue
    raise AttemptDied("its process did not start")


def _exit_with_engine(lifeline: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(lifeline, 1):
            pass
    os._exit(1)
