"""`python -m tests.bench.notebook [ROUNDS [KATA]]`: from running a `%%kata` cell to its report, as a ratio to `import torch`.

Each round imports torch once in a new process, then runs one cell with a version of the attempt that nobody has seen, and waits
for the message with the report, as a notebook does.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import start_new_kernel

from attn_kata.catalog import find

IDLE_SECONDS = 0.6  # between two cells: nobody runs them faster, and it makes the next grading ready


def main(rounds: int, slug: str = "mha") -> None:
    """Print the median and the range."""
    source = (find(slug).folder / "right" / "plain.py").read_text("utf-8")
    ratios, took = [], []
    with tempfile.TemporaryDirectory() as home:
        manager, client = start_new_kernel(env=_environment(Path(home)))
        try:
            client.execute_interactive("%load_ext attn_kata", timeout=60)
            first = _shown(client, f"%%kata {slug}\n{source}")
            for number in range(rounds):
                begun = time.perf_counter()
                subprocess.run([sys.executable, "-c", "import torch"], check=True)
                torch = time.perf_counter() - begun
                time.sleep(IDLE_SECONDS)
                took.append(_shown(client, f"%%kata {slug}\n{source}\n# {number}\n"))
                ratios.append(took[-1] / torch)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    print(f"first cell: {first:.2f} s")
    print(f"later cells: median {statistics.median(took) * 1000:.0f} ms")
    print(
        f"ratio to import torch: median {statistics.median(ratios):.2f}, {min(ratios):.2f}-{max(ratios):.2f}, n={rounds}"
    )


def _shown(client: Any, cell: str) -> float:
    """Seconds from running a cell to the message with its report."""
    begun = time.perf_counter()
    asked = client.execute(cell)
    shown = None
    while True:
        try:
            message = client.get_iopub_msg(timeout=60)
        except Empty:
            raise RuntimeError("no report") from None
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data") and "PASSED" in content["data"]["text/plain"]:
            shown = time.perf_counter() - begun
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            assert shown is not None, cell[:40]
            return shown


def _environment(home: Path) -> dict[str, str]:
    import os

    return {**os.environ, "ATTN_KATA_HOME": str(home)}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, *sys.argv[2:3])
