"""A clock that tests turn by hand, a desk on a folder of their own, and the command as a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attn_kata.history import History
from attn_kata.interview import control, pages, plans, review, scorecard
from attn_kata.interview.control import Desk
from attn_kata.interview.session import Session
from attn_kata.interview.store import Store

RIGHT = b"""def scaled_dot_product_attention(q, k, v):
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v
"""


class HandClock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self._wall, self._boot, self._start = 1_800_000_000.0, 5_000.0, "first"

    def wall(self) -> float:
        return self._wall

    def boot(self) -> float:
        return self._boot

    def boot_id(self) -> str:
        return self._start

    def goes(self, *, minutes: float = 0.0, seconds: float = 0.0) -> None:
        """Time passes, awake or asleep."""
        self._wall += minutes * 60 + seconds
        self._boot += minutes * 60 + seconds

    def set_by(self, *, minutes: float) -> None:
        """Somebody sets the wall clock."""
        self._wall += minutes * 60

    def starts_again(self, *, off_minutes: float, up_minutes: float = 1.0, wall_shift: float = 0.0) -> None:
        """The machine is switched off, and on again."""
        self._wall += (off_minutes + up_minutes + wall_shift) * 60
        self._boot, self._start = up_minutes * 60, self._start + "'"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where things are kept."""
    folder = tmp_path / "home"
    monkeypatch.setenv("ATTN_KATA_HOME", str(folder))
    return folder


@pytest.fixture
def said() -> list[str]:
    """What was said besides results."""
    return []


@pytest.fixture
def desk(home: Path, clock: HandClock, said: list[str]) -> Desk:
    return Desk(store=Store(said.append), clock=clock)


@pytest.fixture
def history(home: Path, said: list[str]) -> History:
    return History(said.append)


Begin = Callable[..., Session]


@pytest.fixture
def begin(desk: Desk, tmp_path: Path) -> Begin:
    """`begin("sdpa", minutes=30)`: a session whose clock has just started."""

    def begin(*katas: str, minutes: float = 40.0, mode: str = "mock", seed: int = 7) -> Session:
        plan = plans.with_minutes(plans.of_katas(katas or ("sdpa",)), minutes)
        session = control.start(desk, plan, mode=mode, folder=tmp_path / "work", seed=seed)  # type: ignore[arg-type]
        return control.advance(desk, session.id)

    return begin


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the candidate works."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(folder: Path, home: Path, ready: Any) -> Run:
    """`run("status")`: what `attn-kata interview status` printed, and its exit code. With options, in a new Python."""
    unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "PYTHONIOENCODING")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment["ATTN_KATA_HOME"] = str(home)

    def run(*arguments: str, lines: str = "", **options: object) -> object:
        if not options:
            return ready.run(("interview", *arguments), cwd=folder, env=environment, lines=lines, timeout=100)
        # Where a file cannot grow, Python keeps half a .pyc, and every later process trips over it.
        limited = {"PYTHONDONTWRITEBYTECODE": "1"} if "preexec_fn" in options else {}
        return subprocess.run(
            [sys.executable, "-m", "attn_kata", "interview", *arguments],
            cwd=folder,
            env={**environment, **limited},
            input=lines,
            capture_output=True,
            encoding="utf-8",
            timeout=100,
            check=False,
            **options,  # type: ignore[call-overload]
        )

    return run  # type: ignore[return-value]


@pytest.fixture
def engine():
    """An engine that answers at once, where a test does not hold it back."""
    from .engine_double import SlowEngine

    return SlowEngine()


@pytest.fixture
def room(desk, history, engine, folder, monkeypatch, said):
    """A room whose clock only looks when a test says so, and where nobody waits for a dialog to listen."""
    from attn_kata.interview.room import keys, screens
    from attn_kata.interview.room.app import Room

    monkeypatch.chdir(folder)
    monkeypatch.setattr(screens, "PAUSE", 0.0)
    monkeypatch.setattr(keys, "BURST", 0.0)
    return Room(desk=desk, history=history, engine=engine, heard=said, look_seconds=0)


@pytest.fixture
def evil(desk, clock, begin, engine):
    """The body of a session whose attempt is made of what must not get through."""
    from .engine_double import EVIL

    session = begin()
    control.ran(desk, session.id, b"x = 1\n", outcome="failed")
    clock.goes(minutes=3)
    control.save(desk, session.id, EVIL)
    control.submit(desk, session.id, EVIL)
    session = control.advance(desk, session.id)
    free = next(place for place, one in enumerate(session.follow_ups, 1) if one["kind"] == "free")
    control.answer(desk, session.id, free, "</li><script>alert(2)</script>\x1b[31m\ud800 | ``` [x](y)")
    session = control.advance(desk, session.id)
    review.grade(desk.store, session, engine)
    reviewed = review.gather(desk.store, session)
    card = scorecard.score(reviewed)
    spread = scorecard.spread({1: card.to_dict(), 2: card.to_dict()}, until=2)
    return pages.body(reviewed, card, spread)
