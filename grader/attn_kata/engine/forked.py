"""What a forked grader child does: one grading, with the source from the face and the report to it."""

from __future__ import annotations

import json
import os
import socket
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from . import channel, system
from .line import Lines
from .remote import ConfinementFailed, Ended, TooWeak

if TYPE_CHECKING:
    from .grading import Loaded


def serve_job(
    requests: int, reports: int, asked: dict[str, Any], control: socket.socket, lines: Lines, loaded: Loaded | None
) -> NoReturn:
    """Grade once. `requests` and `reports` are the engine's, and are closed to what is run here as soon as they may be."""
    try:
        system.keep_off(asked.get("processor"))
        _, source = channel.receive(requests)
        channel.send(control.fileno(), b"READ")
        telling = os.dup(reports)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, requests)
        os.close(nowhere)
        os.dup2(2, reports)  # what pytest prints goes to the log, not between the reports
        kind, payload = _graded(asked, source, ForkedSupply(control, lines), loaded)
        channel.send(control.fileno(), b"DONE")
        channel.receive(control.fileno())  # TELL: from here on it is not cancelled in the middle of a message
        channel.send(telling, kind, payload)
        channel.send(control.fileno(), b"TOLD")
    except channel.ChannelClosed:
        pass  # the engine or the face is gone
    finally:
        os._exit(0)


def _graded(
    asked: dict[str, Any], source: bytes, supply: ForkedSupply, loaded: Loaded | None
) -> tuple[bytes, bytes]:
    """What to tell the face: the report, or the fault."""
    try:
        from .grading import grade

        return b"REPT", json.dumps(grade(asked, source, supply, loaded).to_dict()).encode()
    except TooWeak as error:
        return b"WEAK", json.dumps(error.notes).encode()
    except ConfinementFailed as error:
        return b"FALT", str(error).encode()
    except BaseException:
        return b"FALT", traceback.format_exc().encode("utf-8", "replace")


class ForkedSupply:
    """The grader child's way to attempt processes: the engine forks them and passes their lines."""

    def __init__(self, control: socket.socket, first: Lines) -> None:
        self._control = control
        self._first: Lines | None = first

    def fresh(self) -> Lines:
        if self._first is not None:
            lines, self._first = self._first, None
            return lines
        channel.send(self._control.fileno(), b"NEXT")
        _, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        return Lines(channel=socket.socket(fileno=descriptors[0]), output=descriptors[1])

    def end(self, *, patient: bool) -> Ended:
        channel.send(self._control.fileno(), b"KILL", b"patiently" if patient else b"")
        return Ended(how=channel.receive(self._control.fileno())[1].decode())
