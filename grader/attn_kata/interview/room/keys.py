"""Keys that arrive in a burst: a paste, a held key, type-ahead on a slow machine.

Such keys were all meant for what was on the screen when the first one was pressed. So when the screen changes, keys are
dropped until there is a gap between two of them. One burst takes at most one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

BURST = 0.06  # seconds: keys that are closer than this belong together. A held key repeats every 0.03 s

# After these, a dialog or another screen is about to come.
STEPS = ("ctrl+g", "ctrl+q", "ctrl+b", "ctrl+n", "ctrl+o", "ctrl+p", "f1")


class Bursts:
    """Says of each key whether it may pass."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._shut = False
        self._held = 0
        self._front: object = None

    def passes(self, front: object, at: float) -> bool:
        """Whether a key pressed `at` that second may reach the screen in `front`."""
        gap, self._last = at - self._last, at
        if front is not self._front:
            self._front, self._shut = front, True
        if self._held:
            return False
        if self._shut and gap >= BURST:
            self._shut = False
        return not self._shut

    def shut(self) -> None:
        """Drop the rest of this burst."""
        self._shut = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Drop every key, until a dialog is there to take it."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self._shut = True
