"""However the face ends, the engine and whatever it started end with it, and its folder goes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

LOOP = "import time\ndef scaled_dot_product_attention(q, k, v):\n    while True: time.sleep(1)\n"
DEAF = "import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n" + LOOP
roles = pytest.mark.parametrize("role", ["engine", "spawning"] if sys.platform == "linux" else ["engine"])


def family(engine: str, count: int) -> list[psutil.Process]:
    """The engine of this process id and its children, once there are that many."""
    until, process = time.monotonic() + 20, psutil.Process(int(engine))
    while len(found := [process, *process.children(recursive=True)]) < count and time.monotonic() < until:
        time.sleep(0.02)
    assert len(found) >= count
    return found


@roles
def test_a_face_killed_in_the_middle_takes_everything_along(face, gone, eventually, role):
    running = face(DEAF, role)
    pid, folder = running.stdout.readline().split()
    running.stdout.readline()  # ready
    processes = family(pid, 3)  # engine, attempt child, grader child
    time.sleep(0.5)
    running.kill()

    gone(processes)
    eventually(lambda: not Path(folder).exists())


@roles
def test_a_face_killed_while_torch_loads_takes_the_engine_along(face, gone, eventually, role):
    running = face(LOOP, role, "at once")
    pid, folder = running.stdout.readline().split()
    processes = [psutil.Process(int(pid))]
    time.sleep(0.3)
    running.kill()

    gone(processes, within=2.0)
    eventually(lambda: not Path(folder).exists())


# Neither an engine nor a script with one handles SIGTERM, so that it ends a process as SIGKILL does: a spawning engine, which
# loads torch three times, and its face meet one of the two.


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize(
    ("role", "number"), [("engine", signal.SIGINT), ("engine", signal.SIGTERM), ("spawning", signal.SIGINT)]
)
def test_a_face_that_is_interrupted_leaves_nothing(face, gone, eventually, role, number):
    running = face(DEAF, role, loaded=True)
    pid, folder = running.stdout.readline().split()
    running.stdout.readline()
    processes = family(pid, 3)
    time.sleep(0.3)
    running.send_signal(number)

    gone([*processes, psutil.Process(running.pid)], within=3.0)
    eventually(lambda: not Path(folder).exists())


@pytest.mark.skipif(sys.platform != "linux", reason="children die with their parent on Linux")
@pytest.mark.parametrize(
    ("role", "number"), [("engine", signal.SIGTERM), ("engine", signal.SIGKILL), ("spawning", signal.SIGTERM)]
)
def test_an_engine_that_is_ended_takes_its_children_along(face, gone, role, number):
    running = face(DEAF, role, loaded=True)
    pid, _ = running.stdout.readline().split()
    running.stdout.readline()
    processes = family(pid, 3)
    os.kill(int(pid), number)

    gone(processes, within=1.0 if role == "engine" else 10.0)  # a spawned one may be loading torch, and sees it then
    running.wait(10)  # it tells the fault, and removes the engine's folder
