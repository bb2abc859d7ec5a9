"""The attempt child: confined first, then the candidate's source is compiled and run, then requests are answered.

It holds no answers and imports nothing of attn-kata but what carries bytes.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from . import isolation, wire
from .executor import Executor

HELLO_NONCE = 0


def run(descriptor: int, output: int, confine: Callable[[], isolation.InForce]) -> NoReturn:
    """Serve one attempt over `descriptor`, its prints going to `output`, until the other end closes. Never returns."""
    try:
        _redirect(output)
        try:
            force = confine()
        except Exception as error:  # noqa: BLE001 - told to the grader, which refuses to go on
            _write(descriptor, wire.encode_reply(HELLO_NONCE, wire.RAISED, (f"{type(error).__name__}: {error}",)))
            os._exit(1)
        gc.enable()
        _write(descriptor, wire.encode_reply(HELLO_NONCE, wire.OK, told(force)))
        _serve(descriptor)
    finally:
        os._exit(0)


def told(force: isolation.InForce) -> tuple[str, ...]:
    """What is in force, as texts of the hello: tier, Landlock ABI, seccomp, then notes."""
    return (str(force.tier), str(force.landlock_abi), str(int(force.seccomp)), *force.notes)


def _redirect(output: int) -> None:
    """stdin from nowhere, stdout and stderr into the grader's capped pipe."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for descriptor in {nowhere, output} - {0, 1, 2}:
        os.close(descriptor)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _serve(descriptor: int) -> None:
    executor = Executor()

    def read(count: int) -> bytearray:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            got = os.readv(descriptor, [view]) if hasattr(os, "readv") else _read_into(descriptor, view)
            if not got:
                os._exit(0)  # the grader is done
            view = view[got:]
        return buffer

    while True:
        request, nonce = wire.decode_request(read)
        status, texts, tensors = executor.execute(request)
        del request
        try:
            reply = wire.encode_reply(nonce, status, texts, tensors)
        except ValueError as error:
            reply = wire.encode_reply(nonce, wire.BAD_RESULT, (f"returned {error}",))
        _flush()
        _write(descriptor, reply)


def _read_into(descriptor: int, view: memoryview) -> int:
    part = os.read(descriptor, len(view))
    view[: len(part)] = part
    return len(part)


def _flush() -> None:
    """Let prints made in a call arrive with it. An attempt may have replaced or closed the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001, S110 - nothing of it matters to the reply
            pass


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
