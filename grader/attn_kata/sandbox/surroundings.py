"""The child's working folder and environment, both new, so that nothing of the caller is left in them."""

from __future__ import annotations

import os
import tempfile


def enter(folder: str) -> None:
    """Change to the folder, and replace the environment by one that names only this folder. Raises OSError.

    The user's environment contains tokens and paths. The new one has only variables that the standard library and torch read.
    """
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(
        HOME=folder,
        TMPDIR=folder,
        TEMP=folder,
        USER="attempt",
        LOGNAME="attempt",
        LANG="C.UTF-8",
        PATH="",
        OMP_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        # The inputs are on the processor. Code that asks whether there is a GPU is told that there is none.
        CUDA_VISIBLE_DEVICES="",
        HIP_VISIBLE_DEVICES="",
        # Parts of torch create these folders when they are imported. This one exists already.
        TORCHINDUCTOR_CACHE_DIR=folder,
        TRITON_CACHE_DIR=folder,
    )
    # Set directly: the standard library finds a temporary folder by writing to it, which the next layers refuse, and parts
    # of torch ask for one when they are imported.
    tempfile.tempdir = folder
