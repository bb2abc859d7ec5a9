"""INT, TERM and HUP become one exception, so that open resources are closed. A second signal changes nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(BaseException):
    """A signal told the command to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _State:
    held = False
    arrived: int | None = None


def install() -> None:
    """From now on, these signals raise Stopped in the main thread. An ignored signal (nohup) stays ignored."""
    for number in _STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _arrive)


@contextmanager
def held() -> Iterator[None]:
    """Delay Stopped until the end of the block, for work that must not be left half done."""
    _State.held = True
    try:
        yield
    finally:
        _State.held = False
    if _State.arrived is not None:
        raise Stopped(_State.arrived)


def _arrive(number: int, frame: FrameType | None) -> None:
    if _State.arrived is None:  # a second signal would only interrupt the cleanup
        _State.arrived = number
        if not _State.held:
            raise Stopped(number)
