"""`python -m attn_kata`: the command, without the current folder on the import path."""

import os
import sys


def _drop_current_folder() -> None:
    # `python -m` puts the current folder first: a json.py beside an attempt would be imported in place of the real one.
    try:
        here = {"", ".", os.getcwd()}
    except OSError:  # the folder is gone
        here = {"", "."}
    if sys.path and sys.path[0] in here:
        del sys.path[0]
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".")]


if __name__ == "__main__":
    _drop_current_folder()
    from attn_kata.cli import main

    sys.exit(main())
