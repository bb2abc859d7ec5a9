"""The working folder and the environment of the child: nothing of the caller's is left in either."""

from __future__ import annotations

import os
import sys


def enter(folder: str) -> None:
    """Make the folder the working one and the only one that the environment names; raises OSError.

    The environment holds tokens and paths of the user's; what replaces it is what the standard library asks for.
    """
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(
        HOME=folder, TMPDIR=folder, TEMP=folder, USER="attempt", LOGNAME="attempt", LANG="C.UTF-8", PATH="",
        OMP_NUM_THREADS="1", MKL_NUM_THREADS="1",
    )  # fmt: skip
    tempfile = sys.modules.get("tempfile")
    if tempfile is not None:
        vars(tempfile)["tempdir"] = None  # the engine's answer to "where do temporary files go?" is remembered here
