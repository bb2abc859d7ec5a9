"""The engine process: imports torch once, then forks an attempt child and a grader child for every grading.

Run as `python -I server.py`, with the folders to import from in argv. It is single-threaded, loads nothing of attn-kata but
what carries bytes, and holds no answers, so what it forks starts without them. It ends when its standard input does.
"""

from __future__ import annotations

import gc
import os
import sys

# Before the first import of torch: OpenMP reads it once, and a child forked after a parallel operation would hang in the next.
os.environ["OMP_NUM_THREADS"] = "1"


def main() -> None:
    """Serve gradings until standard input ends."""
    gc.disable()  # importing torch makes no garbage, and looking for it costs a third of the import
    for folder in sys.argv[1:]:
        if folder not in sys.path:
            sys.path.append(folder)
    import torch

    torch.set_num_threads(1)
    from attn_kata.engine.forking import Engine

    Engine(requests=0, reports=1).serve()


if __name__ == "__main__":
    main()
