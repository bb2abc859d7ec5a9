"""The command line: one module for each command. A command parses, makes one call, prints and exits; none imports torch.

Exit codes: 0 all core properties hold, 1 some do not, 2 usage, 3 ungraded, 4 a bug in attn-kata, 129, 130 and 143 after
HUP, INT and TERM.
"""

from __future__ import annotations

import sys

from attn_kata.cli import signals


def main() -> int:
    """Run the command line and return the exit code. With 2, nothing is on stdout."""
    try:
        signals.install()
        from attn_kata.cli.group import run  # click is imported after the signal handlers are installed

        return run(sys.argv[1:])
    except signals.Stopped as stopped:
        return 128 + stopped.number
