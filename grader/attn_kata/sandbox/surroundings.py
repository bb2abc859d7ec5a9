"""The working folder and the environment of the child: nothing of the caller's is left in either."""

from __future__ import annotations

import os
import tempfile


def enter(folder: str) -> None:
    """Make the folder the working one and the only one that the environment names; raises OSError.

    The environment holds tokens and paths of the user's; what replaces it is what the standard library asks for.
    """
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(
        HOME=folder, TMPDIR=folder, TEMP=folder, USER="attempt", LOGNAME="attempt", LANG="C.UTF-8", PATH="",
        OMP_NUM_THREADS="1", MKL_NUM_THREADS="1",
        # Made, with exist_ok, when parts of torch are imported: one that exists need not be made.
        TORCHINDUCTOR_CACHE_DIR=folder, TRITON_CACHE_DIR=folder,
    )  # fmt: skip
    # Told, not found: looking for a folder for temporary files means writing to it, which the next layers refuse, and
    # parts of torch look when they are imported.
    tempfile.tempdir = folder
