"""The attempt child: confined first, then the candidate's source is compiled and run, then requests are answered.

It holds no answers and imports nothing of attn-kata but what carries bytes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn, Protocol

import torch

from attn_kata import sandbox
from attn_kata.attempt.compile_off import leave_uncompiled
from attn_kata.attempt.executor import Executor, Tensors
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Load

HELLO_NONCE = 0


class Line(Protocol):
    """The child's end of the line to the grader."""

    def read_into(self, view: memoryview) -> int: ...

    def write(self, view: memoryview) -> int: ...


class DescriptorLine:
    """A socket by its descriptor, with read and write alone: seccomp refuses the calls that are a socket's own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_into(self, view: memoryview) -> int:
        return os.readv(self._descriptor, [view])

    def write(self, view: memoryview) -> int:
        return os.write(self._descriptor, view)


class SocketLine:
    """A socket as every system has it, where it may be no descriptor."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def read_into(self, view: memoryview) -> int:
        return self._socket.recv_into(view)

    def write(self, view: memoryview) -> int:
        return self._socket.send(view)


def run(
    line: Line,
    output: int | None,
    confine: Callable[[], sandbox.InForce],
    once_confined: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Serve one attempt over `line` until the other end closes; never returns.

    Prints go to `output`; with None they go where standard output goes already. `once_confined` is done once it is confined.
    """
    try:
        _redirect(output)
        try:
            force = confine()
        except Exception as error:
            _write(line, wire.encode_reply(HELLO_NONCE, wire.RAISED, (f"{type(error).__name__}: {error}",)))
            os._exit(1)
        gc.enable()
        _write(line, wire.encode_reply(HELLO_NONCE, wire.OK, told(force)))
        once_confined()
        _serve(line)
    finally:
        os._exit(0)


def told(force: sandbox.InForce) -> tuple[str, ...]:
    """What is in force, as texts of the hello: tier, Landlock ABI, seccomp, then notes."""
    return (str(force.tier), str(force.landlock_abi), str(int(force.seccomp)), *force.notes)


def _redirect(output: int | None) -> None:
    """stdin from nowhere, stdout and stderr into the grader's capped pipe."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
    for descriptor in {nowhere, output} - {None, 0, 1, 2}:
        os.close(descriptor)  # type: ignore[arg-type]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _serve(line: Line) -> None:
    executor = Executor()
    leave_uncompiled()
    _leave_nothing_to_import()

    arrived = bytearray()
    room = memoryview(bytearray(1 << 16))

    def read(count: int) -> bytearray:
        while len(arrived) < count:
            got = line.read_into(room)
            if not got:
                os._exit(0)  # the grader is done
            arrived.extend(room[:got])
        taken = arrived[:count]
        del arrived[:count]
        return taken

    while True:
        request, nonce = wire.decode_request(read)
        if isinstance(request, Load):
            _seed(request.seed)
        status, texts, tensors = executor.execute(request)
        del request
        reply = _encoded(nonce, status, texts, tensors)
        _flush()
        _write(line, reply)


def _seed(seed: int) -> None:
    """One seed, one report: what an attempt draws and prints as well."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)


def _leave_nothing_to_import() -> None:
    """Let `import attn_kata` find nothing: what carries the bytes is not to be patched by its name."""
    for name in [name for name in sys.modules if name.partition(".")[0] == __name__.partition(".")[0]]:
        del sys.modules[name]


def _encoded(nonce: int, status: int, texts: tuple[str, ...], tensors: Tensors) -> bytes:
    """The reply's bytes. What came out of an attempt may not be what it looks like: then the reply says that."""
    try:
        return wire.encode_reply(nonce, status, texts, tensors)
    except ValueError as error:
        return wire.encode_reply(nonce, wire.BAD_RESULT, (f"returned {error}",))
    except MemoryError:
        return wire.encode_reply(nonce, wire.NO_MEMORY)
    except Exception:
        return wire.encode_reply(nonce, wire.BAD_RESULT, ("returned something that cannot be read as a tensor",))


def _flush() -> None:
    """Let prints made in a call arrive with it. An attempt may have replaced or closed the streams."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # nothing of it matters to the reply
            stream.flush()


def _write(line: Line, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[line.write(view) :]
