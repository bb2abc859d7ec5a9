"""The connection to an attempt that runs in this process: for attempts of our own, which need no confinement."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from typing import Any

import torch

from attn_kata.attempt import child
from attn_kata.attempt.compile_off import disable_compile
from attn_kata.attempt.executor import Executor
from attn_kata.attempt.gpus_off import hide_gpus
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.grading.connection import Connection, Ended
from attn_kata.grading.grade import Loaded, grade
from attn_kata.properties.failures import AttemptDied
from attn_kata.protocol import replies, wire
from attn_kata.protocol.messages import Job, Request
from attn_kata.report.model import Report

SECONDS = 240.0  # no attempt of our own is made to be slow, and a machine may be busy


def grade_here(source: bytes, *, attempt: str, loaded: Loaded) -> Report:
    """Grade an attempt of our own in this process. `attempt` is the name that the report shows."""
    disable_compile()
    hide_gpus()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)  # whatever the attempt before has set
    torch.set_grad_enabled(True)
    katas, solutions = str(loaded.kata.folder.parent), str(loaded.solution.parent)
    job = Job(slug=loaded.kata.slug, katas=katas, solutions=solutions, attempt=attempt, timeout=SECONDS)
    return grade(job, source, _NoLauncher(), loaded, connection=Loopback, diagnosis_seconds=SECONDS)


class Loopback(Connection):
    """Requests and replies are the same bytes as between two processes. Nothing is confined, and nothing is blocked."""

    def __init__(self, *of_connection: Any, **more: Any) -> None:
        super().__init__(*of_connection, **more)
        self._executor = Executor()
        self._drawn = torch.default_generator.get_state()  # the state of torch's generator, as the attempt left it

    def start(self) -> wire.Reply:
        """Load the attempt. Returns the reply to the load."""
        random.seed(self._load.seed)
        self._drawn = torch.Generator().manual_seed(self._load.seed).get_state()
        self.generation += 1
        return self.ask(self._load)

    def ask(self, request: Request) -> wire.Reply:
        """The reply to a request. Raises AttemptDied where it is none."""
        ours = torch.default_generator.get_state()
        torch.default_generator.set_state(self._drawn)
        try:
            sent, _ = wire.decode_request(_reading(wire.encode_request(request, 1)))
            answered = child.encoded(1, *self._executor.execute(sent))
        finally:
            self._drawn = torch.default_generator.get_state()
            torch.default_generator.set_state(ours)
        reply = wire.decode_reply(_reading(answered), 1)
        if reply.status == wire.NO_MEMORY or not replies.answers(request, reply):
            raise AttemptDied("its reply does not answer the request")
        return reply

    def block(self, words: tuple[str, ...]) -> None:
        """Do nothing: the grading itself runs in this process."""

    def prefetch(self, questions: Sequence[bytes]) -> None:
        """Do nothing: an answer is there at once."""

    def collect(self) -> None:
        """Do nothing: prints go where those of this process go."""


class _NoLauncher:
    """Of attempt processes: there is none."""

    def start(self) -> Endpoints:
        raise AssertionError("a loopback starts no process")

    def end(self, *, patient: bool) -> Ended:
        return Ended()


def _reading(data: bytes) -> wire.Reader:
    stream = io.BytesIO(data)
    return lambda count: bytearray(stream.read(count))
