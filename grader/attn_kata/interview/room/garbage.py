"""Garbage collection in the room: in small portions, and a full collection only when nobody types.

Textual's drawings become cyclic garbage after a few keys. A portion takes a few milliseconds, and few objects survive
it. A full collection would delay a key too long.
"""

from __future__ import annotations

import gc

_PORTIONS = (1_000, 8, 1_000_000)
_OLD = 4  # portions since the last full collection


class Garbage:
    """Controls the collector between `begin` and `end`."""

    def __init__(self) -> None:
        self._before = gc.get_threshold()

    def begin(self) -> None:
        """Collect in portions from now on."""
        gc.set_threshold(*_PORTIONS)

    def end(self) -> None:
        """Restore the old settings."""
        gc.set_threshold(*self._before)

    def settle(self) -> None:
        """Exclude all present objects from later collections."""
        gc.collect()
        gc.freeze()

    def pause(self) -> None:
        """Nobody types: do a full collection, if there may be garbage."""
        if gc.get_count()[2] >= _OLD:
            gc.collect()
