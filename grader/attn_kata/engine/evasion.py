"""Ways around the recorder that need no tampering: a thread of one's own, and taking the profile function away.

Whoever takes them is told that what runs was not seen, which fails the property that asked. An attempt that reaches into the
recorder's own objects can still hide what it calls: what a child says fails an attempt, and its silence proves nothing.
"""

from __future__ import annotations

import _thread
import sys
import types
from typing import Any

import torch

# Builtins that start a thread, where neither the profiler nor a profile function follows, or that end one of the two.
_EVASIVE: dict[Any, str] = {sys.setprofile: "it called sys.setprofile"}
for _module, _names, _said in (
    (_thread, ("start_new_thread", "start_new", "start_joinable_thread"), "it started a thread"),
    (
        torch._C._autograd,
        ("_disable_profiler", "_disable_profiler_legacy", "_enable_profiler", "_enable_profiler_legacy"),
        "it switched torch's profiler",
    ),
):
    for _name in _names:
        if hasattr(_module, _name):
            _EVASIVE[getattr(_module, _name)] = _said


def count_threads() -> int:
    """How many threads run Python, whatever started them."""
    return len(sys._current_frames())


class Evasion:
    """A context within the recorder's; `found` says how the call kept out of sight, or "".

    `threads` is how many the process had before the attempt was loaded.
    """

    def __init__(self, *, threads: int) -> None:
        self.found = ""
        self._threads = threads
        self._watching: Any = None
        self._own = self._event  # one object, so that it can be told from another

    def __enter__(self) -> Evasion:
        if count_threads() > self._threads:
            self.found = "it keeps threads of its own"
        self._watching = sys.getprofile()
        sys.setprofile(self._own)
        return self

    def __exit__(self, *error: object) -> None:
        if sys.getprofile() is not self._own:
            self.found = self.found or "it replaced the profile function"
        sys.setprofile(self._watching)

    def _event(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "c_call" and frame.f_code is not Evasion.__exit__.__code__:
            try:
                evasive = _EVASIVE.get(argument)
            except TypeError:  # not hashable
                evasive = None
            if evasive is not None:
                self.found = self.found or evasive
        if self._watching is not None:
            self._watching(frame, event, argument)
