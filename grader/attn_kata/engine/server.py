"""The entry point of the engine process, and of its children where they are spawned. `python -I server.py ROLE FOLDER ...`.

The folders are the ones to import from. In the role `engine` it starts an attempt process and a grader for every grading: it
forks them, or spawns them on systems that cannot fork. The engine loads no answers. One that forks has a single thread when it
forks, and loads only the modules that its children need. The engine ends when its standard input closes.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import traceback

# Set before torch is imported: OpenMP reads it once. A child forked after a parallel operation would hang in its next one.
os.environ["OMP_NUM_THREADS"] = "1"
# The same for GPUs: a grading has none. With one, a process that is forked after a backward pass could make none itself.
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HIP_VISIBLE_DEVICES"] = ""


def main() -> None:
    """Play the role that argv names."""
    gc.disable()  # importing torch leaves almost no garbage, and collecting takes a third of the import's time
    role, *folders = sys.argv[1:]
    _import_from(*folders)
    if role == "engine" and _forks():
        _serve_forking()
    elif role in ("engine", "spawning"):
        from attn_kata.engine.spawn_server import SpawnServer

        _serve_and_exit(SpawnServer(requests=0, reports=1, folders=folders).serve)
    else:
        _import_torch()
        from attn_kata.engine import spawn_worker

        spawn_worker.ROLES[role]()


def _import_from(ours: str, *others: str) -> None:
    """Import attn-kata from where the face found it. Other folders go to the end of the path.

    Only attn-kata's folder goes first. A folder with many packages may hold a module named like one of the standard library.
    """
    if ours not in sys.path and ours not in others:
        sys.path.insert(0, ours)
    sys.path += [folder for folder in others if folder not in sys.path]


def _forks() -> bool:
    # macOS can fork, but then hangs or crashes in frameworks that the parent had loaded.
    return sys.platform == "linux" and hasattr(os, "fork")


def _serve_forking() -> None:
    with _exit_with_face():
        _import_torch()
    from attn_kata.engine.fork_server import ForkServer

    _serve_and_exit(ForkServer(requests=0, reports=1).serve)


def _import_torch() -> None:
    import torch

    torch.set_num_threads(1)
    # torch asks the driver once and keeps the answer. A sandbox refuses the question, and torch would warn of that there.
    torch.cuda.is_available()


class _exit_with_face:
    """While torch is imported, a thread exits the process if the face goes. The thread ends before any fork."""

    def __enter__(self) -> None:
        import threading

        self._import_done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._import_done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._import_done.wait(0.2):
            if _face_is_gone():
                _remove_folder()
                os._exit(0)


def _serve_and_exit(serve) -> None:  # type: ignore[no-untyped-def]  # importing typing would cost time here
    """Serve until the face is gone, then exit without torch's teardown. Errors go to the log, which the face reads."""
    try:
        serve()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        if _face_is_gone():  # nobody reads the log, and nobody else removes the folder
            _remove_folder()
        os._exit(1)
    _remove_folder()
    os._exit(0)


def _face_is_gone() -> bool:
    import select

    if not hasattr(select, "poll"):  # Windows
        return False
    standard_input = select.poll()
    standard_input.register(0, 0)  # report only the end of the stream
    return bool(standard_input.poll(0))


def _remove_folder() -> None:
    """Remove the engine's working folder. The face does this too, but not if it was killed."""
    here = os.getcwd()
    if os.path.basename(here).startswith("attn-kata-"):
        os.chdir(os.path.dirname(here))
        shutil.rmtree(here, ignore_errors=True)


if __name__ == "__main__":
    main()
