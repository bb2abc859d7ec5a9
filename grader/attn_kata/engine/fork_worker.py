"""The work of a forked grader: it reads the source from the face, grades, and sends the report to the face."""

from __future__ import annotations

import os
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attn_kata.grading import processors
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.grading.connection import ConfinementFailed, Ended, TooWeak
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job, Message

if TYPE_CHECKING:
    from attn_kata.grading.grade import Loaded

LONG_SECONDS = 30.0  # as DIAGNOSIS_SECONDS of `grade`, which is not imported before the first grading


@dataclass(frozen=True, kw_only=True)
class FaceStreams:
    """A grader's own descriptors of the face: `source` to read from, `report` to write to."""

    source: int
    report: int

    @classmethod
    def taken_from(cls, requests: int, reports: int) -> FaceStreams:
        """Take over the engine's descriptors. From now on only this object leads to the face; prints go to the log."""
        streams = cls(source=os.dup(requests), report=os.dup(reports))
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, requests)
        os.close(nowhere)
        os.dup2(2, reports)
        return streams


def serve_job(
    face: FaceStreams,
    job: Job,
    control: socket.socket,
    endpoints: Endpoints,
    loaded: Loaded | None,
    offer: Callable[[], None] = lambda: None,
) -> bool:
    """Grade once. Return whether this process may grade again; if so, it called `offer` before the engine knew of the end.

    Another grading is only for a process that is as it was before this one. So after a death of the attempt, after a reading,
    and after a grading that took so long that a time limit may have interrupted it, the next grading gets a fresh process.
    """
    processors.keep_off(job.processor)
    message = channel.receive(face.source)
    assert isinstance(message, messages.Source)
    channel.send(control.fileno(), messages.SourceRead())
    launcher, started = ForkLauncher(control, endpoints), time.monotonic()
    answer = _graded(job, message.source, launcher, loaded)
    quick = time.monotonic() - started < min(job.timeout, LONG_SECONDS) / 2
    again = (
        quick and launcher.ended == 0 and isinstance(answer, messages.Graded) and answer.report.get("reading") is None
    )
    channel.send(control.fileno(), messages.GradingDone())
    channel.receive(control.fileno())  # SendReport: from here on nothing is cancelled in mid-message
    channel.send(face.report, answer)
    if again:
        offer()
    channel.send(control.fileno(), messages.ReportSent())
    return again


def _graded(job: Job, source: bytes, launcher: ForkLauncher, loaded: Loaded | None) -> Message:
    """The message for the face: the report, or the fault."""
    try:
        from attn_kata.grading.grade import grade

        return messages.Graded(report=grade(job, source, launcher, loaded).to_dict())
    except TooWeak as error:
        return messages.IsolationTooWeak(notes=error.notes)
    except ConfinementFailed as error:
        return messages.Fault(text=str(error))
    except BaseException:
        return messages.Fault(text=traceback.format_exc())


class ForkLauncher:
    """Starts attempt processes for a grader: the engine forks them and passes their connections. `ended` counts their ends."""

    def __init__(self, control: socket.socket, first: Endpoints) -> None:
        self._control = control
        self._first: Endpoints | None = first
        self.ended = 0

    def start(self) -> Endpoints:
        """Start an attempt process and return its connection. The engine ends the one before."""
        if self._first is not None:
            endpoints, self._first = self._first, None
            return endpoints
        channel.send(self._control.fileno(), messages.NewAttempt())
        _, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        return Endpoints(channel=socket.socket(fileno=descriptors[0]), output=descriptors[1])

    def end(self, *, patient: bool) -> Ended:
        """End the current process and say how it ended."""
        self.ended += 1
        channel.send(self._control.fileno(), messages.EndAttempt(patient=patient))
        message = channel.receive(self._control.fileno())
        assert isinstance(message, messages.AttemptEnded)
        return Ended(how=message.how)
