"""One line from the person at the keyboard, or from a pipe."""

from __future__ import annotations

import sys


def line(prompt: str) -> str | None:
    """The next line, stripped; None at the end of the input (Ctrl-D)."""
    if sys.stdin is None:
        return None
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    sys.stdout.write(prompt)
    sys.stdout.flush()
    typed = sys.stdin.readline()
    if not sys.stdin.isatty() or not typed:
        sys.stdout.write("\n")  # nobody pressed Enter here
    return typed.strip() if typed else None
