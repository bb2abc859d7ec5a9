"""An engine that is kept: what ends it, and what does not."""

from __future__ import annotations

from typing import ClassVar

import pytest

from attn_kata.engine import persistent
from attn_kata.engine.client import EngineFault
from attn_kata.engine.persistent import PersistentEngine


class EngineDouble:
    """An engine whose grading is ended from another thread, and that fails only then."""

    pid = 0
    made: ClassVar[list[EngineDouble]] = []

    def __init__(self, *, tier: int | None) -> None:
        self.closed = False
        self.owner: PersistentEngine | None = None
        self.made.append(self)

    def grade(self, slug: str, source: bytes) -> str:
        if self.owner is None:
            return "graded"
        self.owner.restart()  # the face was interrupted
        assert self.owner.grade(slug, source) == "graded"  # and grades again, before this thread is told
        raise EngineFault("the engine ended without an answer")

    def close(self) -> None:
        self.closed = True


def test_a_grading_that_was_stopped_does_not_end_the_engine_of_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistent, "Engine", EngineDouble)
    monkeypatch.setattr(persistent.processors, "stay_on", lambda *_: None)
    monkeypatch.setattr(EngineDouble, "made", [])
    kept = PersistentEngine()
    EngineDouble.made[0].owner = kept

    with pytest.raises(EngineFault):
        kept.grade("sdpa", b"")

    assert [engine.closed for engine in EngineDouble.made] == [True, False]
