"""When Python's garbage is collected in the room: in small portions, and as a whole only when nobody types.

What Textual draws is garbage in circles a few keys later. A portion takes a few milliseconds, and hardly any of it grows
old; a whole collection takes longer than a key may.
"""

from __future__ import annotations

import gc

_PORTIONS = (1_000, 8, 1_000_000)
_OLD = 4  # portions since the last whole collection


class Garbage:
    """From `begin` to `end`."""

    def __init__(self) -> None:
        self._before = gc.get_threshold()

    def begin(self) -> None:
        """In portions from here on."""
        gc.set_threshold(*_PORTIONS)

    def end(self) -> None:
        """As it was."""
        gc.set_threshold(*self._before)

    def settle(self) -> None:
        """What is there now stays: it is never looked at again."""
        gc.collect()
        gc.freeze()

    def pause(self) -> None:
        """Nobody types: collect all of it, where there may be some."""
        if gc.get_count()[2] >= _OLD:
            gc.collect()
