"""Every check there is: linters, then types beside the tests, which run on four workers, because many wait. What CI runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINTERS = {
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
}
TYPES = ["-m", "mypy"]
# Of pytest's plugins one is needed; with ours, pytest would compile the whole package anew, in every worker.
TESTS = ["-m", "pytest", "-q", "--disable-plugin-autoload", "-p", "xdist", "-n", "4", "--dist", "worksteal"]


def main() -> int:
    """Run every check; 0 where all passed."""
    # Hundreds of processes would compile the package anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    options = {"cwd": ROOT, "env": environment}
    failed = []

    def told(name: str, code: int, started: float | None = None) -> None:
        failed.extend([name] if code else [])
        taken = f" after {time.monotonic() - started:.0f} s" if started else ""
        print(f"== {name}: {'failed' if code else 'ok'}{taken}", flush=True)

    for name, arguments in LINTERS.items():
        print(f"== {name}", flush=True)
        started = time.monotonic()
        told(name, subprocess.run([sys.executable, *arguments], **options).returncode, started)
    started = time.monotonic()
    with tempfile.TemporaryFile() as said:
        types = subprocess.Popen([sys.executable, *TYPES], stdout=said, stderr=said, **options)
        print("== pytest, and mypy beside it", flush=True)
        told("pytest", subprocess.run([sys.executable, *TESTS], **options).returncode, started)
        code = types.wait()
        said.seek(0)
        print(said.read().decode(errors="replace").strip())
        told("mypy", code)
    print(f"failed: {', '.join(failed)}" if failed else "everything passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
