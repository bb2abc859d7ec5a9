"""The work of a forked grader: one grading. It reads the source from the face and sends the report to the face."""

from __future__ import annotations

import os
import socket
import traceback
from typing import TYPE_CHECKING, NoReturn

from attn_kata.grading import processors
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.grading.connection import ConfinementFailed, Ended, TooWeak
from attn_kata.protocol import channel, messages
from attn_kata.protocol.messages import Job, Message

if TYPE_CHECKING:
    from attn_kata.grading.grade import Loaded


def serve_job(
    requests: int, reports: int, job: Job, control: socket.socket, endpoints: Endpoints, loaded: Loaded | None
) -> NoReturn:
    """Grade once and exit. `requests` and `reports` are the engine's descriptors, replaced here as soon as possible."""
    try:
        processors.keep_off(job.processor)
        message = channel.receive(requests)
        assert isinstance(message, messages.Source)
        channel.send(control.fileno(), messages.SourceRead())
        face = os.dup(reports)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, requests)
        os.close(nowhere)
        os.dup2(2, reports)  # pytest's prints go to the log, not between the reports
        answer = _graded(job, message.source, ForkLauncher(control, endpoints), loaded)
        channel.send(control.fileno(), messages.GradingDone())
        channel.receive(control.fileno())  # SendReport: from here on nothing is cancelled in mid-message
        channel.send(face, answer)
        channel.send(control.fileno(), messages.ReportSent())
    except channel.ChannelClosed:
        pass  # the engine or the face is gone
    finally:
        os._exit(0)


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
    """Starts attempt processes for a grader: the engine forks them and passes their connections."""

    def __init__(self, control: socket.socket, first: Endpoints) -> None:
        self._control = control
        self._first: Endpoints | None = first

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
        channel.send(self._control.fileno(), messages.EndAttempt(patient=patient))
        message = channel.receive(self._control.fileno())
        assert isinstance(message, messages.AttemptEnded)
        return Ended(how=message.how)
