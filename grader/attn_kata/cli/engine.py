"""The engine as a command uses it: it starts early, and always ends with the command."""

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
    """A running engine, of this tier or the default; torch loads meanwhile. A signal leaves no process and no folder."""
    from attn_kata.engine.client import Engine  # only here: `--help` does not need its imports

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
    """An engine for many gradings. It restarts after a crash or a change of the package, and ends like `started`."""
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
