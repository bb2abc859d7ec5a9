"""Every check there is: linters, types, then the tests on three workers, because many of them wait. What CI runs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKS = (
    ("ruff check", ["-m", "ruff", "check", "."]),
    ("ruff format", ["-m", "ruff", "format", "--check", "."]),
    ("mypy", ["-m", "mypy"]),
    ("pytest", ["-m", "pytest", "-q", "-n", "3", "--dist", "worksteal"]),
)


def main() -> int:
    """Run every check; 0 where all passed."""
    failed = []
    for name, arguments in CHECKS:
        started = time.monotonic()
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, *arguments], cwd=ROOT).returncode:
            failed.append(name)
        print(f"== {name}: {'failed' if name in failed else 'ok'} after {time.monotonic() - started:.0f} s", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "everything passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
