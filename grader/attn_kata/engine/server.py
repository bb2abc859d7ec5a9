"""The engine process, and the children of one that cannot fork. Run as `python -I server.py ROLE FOLDER ...`.

The folders are those to import from. As `engine` it forks an attempt child and a grader child for every grading, or spawns
them where fork is not to be had; until then it is single-threaded, loads nothing of attn-kata but what carries bytes, and
holds no answers. It ends when its standard input does.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import traceback

# Before the first import of torch: OpenMP reads it once, and a child forked after a parallel operation would hang in the next.
os.environ["OMP_NUM_THREADS"] = "1"


def main() -> None:
    """Play the role that argv names."""
    gc.disable()  # importing torch makes no garbage, and looking for it costs a third of the import
    role, *folders = sys.argv[1:]
    _import_from(*folders)
    if role == "engine" and _forks():
        _serve_forking()
    elif role in ("engine", "spawning"):
        from attn_kata.engine.spawn_server import SpawnServer

        _until_the_face_is_gone(SpawnServer(requests=0, reports=1, folders=folders).serve)
    else:
        _import_torch()
        from attn_kata.engine import spawn_worker

        spawn_worker.ROLES[role]()


def _import_from(ours: str, *others: str) -> None:
    """Find attn-kata where the face found it, and the rest behind what this Python finds by itself.

    Only a folder of our own goes first: one of many packages might hold a module of the standard library's name.
    """
    if ours not in sys.path and ours not in others:
        sys.path.insert(0, ours)
    sys.path += [folder for folder in others if folder not in sys.path]


def _forks() -> bool:
    # macOS forks, and then hangs or crashes in frameworks that the parent had loaded.
    return sys.platform == "linux" and hasattr(os, "fork")


def _serve_forking() -> None:
    with _leaving_with_the_face():
        _import_torch()
    from attn_kata.engine.fork_server import ForkServer

    _until_the_face_is_gone(ForkServer(requests=0, reports=1).serve)


def _import_torch() -> None:
    import torch

    torch.set_num_threads(1)


class _leaving_with_the_face:
    """While torch is imported nobody reads standard input: a thread sees that the face is gone. It is gone before any fork."""

    def __enter__(self) -> None:
        import threading

        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        import select

        standard_input = select.poll()
        standard_input.register(0, 0)  # nothing but its end is waited for
        while not self._over.wait(0.2):
            if standard_input.poll(0):
                _remove_folder()
                os._exit(0)


def _until_the_face_is_gone(serve) -> None:  # type: ignore[no-untyped-def]  # typing is not worth its import here
    """Serve, then leave without torch's teardown. What goes wrong here is in the log, which the face reads."""
    try:
        serve()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    _remove_folder()
    os._exit(0)


def _remove_folder() -> None:
    """Remove the engine's folder, where it works, for a face that was killed and cannot."""
    here = os.getcwd()
    if os.path.basename(here).startswith("attn-kata-"):
        os.chdir(os.path.dirname(here))
        shutil.rmtree(here, ignore_errors=True)


if __name__ == "__main__":
    main()
