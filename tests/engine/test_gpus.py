"""A GPU beside an engine: it is asked for before anyone is forked, and not seen."""

from __future__ import annotations

import os
import subprocess
import sys

ASKED = """
import os
import torch
torch.cuda.is_available = lambda: print("asked, of", os.environ["CUDA_VISIBLE_DEVICES"] or "none")
from attn_kata.engine import server
server._import_torch()
"""


def test_an_engine_asks_for_gpus_before_it_forks_and_sees_none() -> None:
    """After a backward pass beside a GPU no forked process can make one; asked in a sandbox, torch prints a warning."""
    surroundings = {**os.environ, "CUDA_VISIBLE_DEVICES": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    done = subprocess.run(
        [sys.executable, "-c", ASKED], env=surroundings, capture_output=True, text=True, timeout=120, check=False
    )

    assert (done.returncode, done.stdout) == (0, "asked, of none\n"), done.stderr
