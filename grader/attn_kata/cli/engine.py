"""The engine as a command uses it: started early, and ended whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attn_kata.cli import signals

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine
    from attn_kata.engine.persistent import PersistentEngine


@contextmanager
def started(tier: int | None = None) -> Iterator[Engine]:
    """A running engine, of this tier or the system's; torch loads meanwhile. A signal leaves no process and no folder."""
    from attn_kata.engine.client import Engine  # only here: `--help` needs none of what it brings

    engine: Engine | None = None
    try:
        with signals.held():
            engine = Engine(tier=tier)
        yield engine
    finally:
        if engine is not None:
            with signals.held():
                engine.close()


@contextmanager
def kept() -> Iterator[PersistentEngine]:
    """An engine for many gradings, begun anew when it fell over or the package changed; ended like `started`'s."""
    from attn_kata.engine.persistent import PersistentEngine

    engine: PersistentEngine | None = None
    try:
        with signals.held():
            engine = PersistentEngine()
        yield engine
    finally:
        if engine is not None:
            with signals.held():
                engine.close()
