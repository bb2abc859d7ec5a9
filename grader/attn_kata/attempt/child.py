"""The attempt process: it confines itself, then runs the candidate's source, then answers requests.

It holds no answers. Of attn-kata, it imports only `attempt`, `protocol` and `sandbox`.
"""

from __future__ import annotations

import contextlib
import functools
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
from attn_kata.attempt.compile_off import disable_compile
from attn_kata.attempt.executor import Executor, Tensors
from attn_kata.attempt.gpus_off import hide_gpus
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Load

HELLO_NONCE = 0


class Stream(Protocol):
    """The child's end of the byte stream to the grader."""

    def read_into(self, view: memoryview) -> int: ...

    def write(self, view: memoryview) -> int: ...


class DescriptorStream:
    """A socket used through its descriptor, with read and write only: seccomp refuses the socket calls."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_into(self, view: memoryview) -> int:
        return os.readv(self._descriptor, [view])

    def write(self, view: memoryview) -> int:
        return os.write(self._descriptor, view)


class SocketStream:
    """A socket used through socket calls, for systems where a socket is not a file descriptor (Windows)."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def read_into(self, view: memoryview) -> int:
        return self._socket.recv_into(view)

    def write(self, view: memoryview) -> int:
        return self._socket.send(view)


def run(
    stream: Stream,
    output: int | None,
    confine: Callable[[], sandbox.InForce],
    once_confined: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Serve one attempt over `stream` until the other end closes. Never returns.

    Prints go to the descriptor `output`; with None they go to standard output as it is. `once_confined` is called after
    `confine`.
    """
    try:
        _redirect(output)
        try:
            force = confine()
        except Exception as error:
            _write(stream, wire.encode_reply(HELLO_NONCE, wire.RAISED, (f"{type(error).__name__}: {error}",)))
            os._exit(1)
        gc.enable()
        _write(stream, wire.encode_reply(HELLO_NONCE, wire.OK, isolation_texts(force)))
        once_confined()
        _serve(stream)
    finally:
        os._exit(0)


def isolation_texts(force: sandbox.InForce) -> tuple[str, ...]:
    """The isolation in force, as the texts of the first reply: tier, Landlock ABI, seccomp, then notes."""
    return (str(force.tier), str(force.landlock_abi), str(int(force.seccomp)), *force.notes)


def _redirect(output: int | None) -> None:
    """Connect stdin to the null device, and stdout and stderr to the grader's pipe."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
    for descriptor in {null, output} - {None, 0, 1, 2}:
        os.close(descriptor)  # type: ignore[arg-type]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _serve(stream: Stream) -> None:
    executor = Executor()
    disable_compile()
    hide_gpus()
    _hide_package()

    arrived = bytearray()
    buffer = memoryview(bytearray(1 << 16))

    def read(count: int) -> bytearray:
        while len(arrived) < count:
            got = stream.read_into(buffer)
            if not got:
                os._exit(0)  # the grader is done
            arrived.extend(buffer[:got])
        taken = arrived[:count]
        del arrived[:count]
        return taken

    while True:
        request, nonce = wire.decode_request(read)
        if isinstance(request, Load):
            _seed(request.seed)
        status, texts, tensors = executor.execute(request)
        del request
        reply = encoded(nonce, status, texts, tensors)
        _flush()
        _write(stream, reply)


def _seed(seed: int) -> None:
    """Seed the random generators, so that the attempt draws the same numbers, and prints the same, in every grading."""
    random.seed(seed)
    torch.default_generator.manual_seed(seed)


def _hide_package() -> None:
    """Remove attn-kata's modules from `sys.modules`, so that the attempt cannot patch them by name."""
    for name in own_modules(len(sys.modules)):
        del sys.modules[name]


@functools.lru_cache(maxsize=1)
def own_modules(loaded: int) -> tuple[str, ...]:
    """The names of attn-kata's modules. `loaded` is the number of all modules: with another one, they are looked for again.

    An engine calls this before it forks. A forked process that goes through all names writes to the page of each, and so
    copies hundreds of pages.
    """
    package = __name__.partition(".")[0]
    return tuple(name for name in sys.modules if name == package or name.startswith(f"{package}."))


def encoded(nonce: int, status: int, texts: tuple[str, ...], tensors: Tensors) -> bytes:
    """The reply's bytes. If a result cannot be encoded, the reply says so: a tensor of an attempt may be of any kind."""
    try:
        return wire.encode_reply(nonce, status, texts, tensors)
    except ValueError as error:
        return wire.encode_reply(nonce, wire.BAD_RESULT, (f"returned {error}",))
    except MemoryError:
        return wire.encode_reply(nonce, wire.NO_MEMORY)
    except Exception:
        return wire.encode_reply(nonce, wire.BAD_RESULT, ("returned something that cannot be read as a tensor",))


def _flush() -> None:
    """Flush the prints before the reply. An attempt may have replaced or closed the streams."""
    for output in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):  # whatever fails here, the reply is still valid
            output.flush()


def _write(stream: Stream, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]
