"""The time of a session: wall time to show, boot time to measure.

A wall clock can be changed. Boot time cannot, and it also counts while the machine sleeps. Between two moments of one
boot, only boot time counts, so changing the wall clock has no effect. After a reboot the wall clock counts, but at least
the time since the reboot has passed.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

_JITTER_SECONDS = 5.0  # two processes may read the clock in one order and write in the other order
_SET_SECONDS = 30.0  # less than that is a clock that is kept right
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One reading of the clock: seconds since 1970, seconds since the machine started, and the id of that start."""

    wall: float
    boot: float
    boot_id: str

    @property
    def utc(self) -> datetime:
        return datetime.fromtimestamp(self.wall, timezone.utc)


NEVER = Moment(wall=0.0, boot=0.0, boot_id="")


class Clock(Protocol):
    """A source of time; tests have a faster one."""

    def wall(self) -> float:
        """Seconds since 1970. A user may change this clock."""
        ...

    def boot(self) -> float:
        """Seconds since the machine was started, asleep or awake. Never goes back within one `boot_id`."""
        ...

    def boot_id(self) -> str:
        """The id of this start of the machine; empty when the system has none."""
        ...


class SystemClock:
    """This machine's clock."""

    def wall(self) -> float:
        return time.time()

    def boot(self) -> float:
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        if sys.platform == "darwin":
            return time.clock_gettime(time.CLOCK_MONOTONIC)  # there it counts sleep, and time.monotonic does not
        return time.monotonic()

    def boot_id(self) -> str:
        try:
            return _BOOT_ID.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""


def read(clock: Clock) -> Moment:
    """The present moment."""
    return Moment(wall=clock.wall(), boot=clock.boot(), boot_id=clock.boot_id())


def passed(since: Moment, now: Moment) -> float:
    """Seconds from `since` to `now`, never negative."""
    by_wall, by_boot = max(0.0, now.wall - since.wall), now.boot - since.boot
    if since.boot_id != now.boot_id or (not now.boot_id and by_boot < -_JITTER_SECONDS):
        return max(by_wall, now.boot)  # the machine restarted: it has been up for `boot` seconds
    if not now.boot_id:
        return max(by_wall, by_boot)  # without a boot id, the boot clock may have stopped in sleep or restarted
    return max(0.0, by_boot)


def set_by(since: Moment, now: Moment) -> float:
    """Seconds by which the wall clock was set forward, or back (negative); 0 where that cannot be known.

    Without a boot id, a clock that was set forward looks like a machine that slept.
    """
    by = (now.wall - since.wall) - (now.boot - since.boot)
    if since.boot_id != now.boot_id or abs(by) < _SET_SECONDS or (not now.boot_id and by > 0):
        return 0.0
    return by


def clock_text(seconds: float) -> str:
    """`43:12`, `1:05:00`; `0:00` when the time is over."""
    whole = max(0, int(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def in_words(seconds: float) -> str:
    """`12 minutes`, `1 minute`, `40 seconds`, `3.5 hours`."""
    if seconds < 90:
        count, unit = round(seconds) if seconds < 59.5 else 1, "second" if seconds < 59.5 else "minute"
    elif seconds < 5400:
        count, unit = round(seconds / 60), "minute"
    else:
        return f"{seconds / 3600:.1f}".removesuffix(".0") + " hours"
    return f"{count} {unit}{'' if count == 1 else 's'}"
