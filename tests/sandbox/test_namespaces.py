"""Tier 2: alone, with no network, and ended through the process that waits for it."""

from __future__ import annotations

import ast
import errno
import os
import signal
import time

import pytest

from attn_kata.sandbox import Plan, confine, namespaces


@pytest.fixture(autouse=True)
def _namespaces_are_to_be_had(prepared):
    if prepared.namespaces_refused:
        pytest.skip(f"no namespaces here: {prepared.namespaces_refused}")


def test_a_jailed_child_is_process_1_and_in_force_says_so(in_child):
    outcome = in_child(os.getpid, tier=2)

    assert outcome.value == 1
    assert (outcome.in_force["tier"], outcome.in_force["namespaces"]) == (2, True)


def test_every_kind_of_namespace_is_new_and_everything_in_it_read_only(tmp_path):
    """Seen from inside before Landlock and seccomp close the view."""
    kinds = ("ipc", "mnt", "net", "pid", "user", "uts")
    before = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in kinds}
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "answer").write_text("42")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        me = os.getpid()
        try:
            namespaces.enter([str(hidden)])
            try:
                (tmp_path / "new").write_text("written")
                wrote = "written"
            except OSError as error:
                wrote = str(error.errno)
            # /proc still shows the world outside: there the parent's only child is this process.
            with open(f"/proc/{me}/task/{me}/children") as file:
                outside = int(file.read())
            same = [kind for kind in kinds if os.readlink(f"/proc/{outside}/ns/{kind}") == before[kind]]
            with open(f"/proc/{outside}/net/dev") as file:
                interfaces = [line.split(":")[0].strip() for line in file if ":" in line]
            os.write(writing, repr((same, interfaces, wrote, os.listdir(hidden))).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    told = os.read(reading, 1000).decode()
    os.close(reading)

    same, interfaces, wrote, listed = ast.literal_eval(told)
    assert same == []
    assert "lo" in interfaces
    assert not [name for name in interfaces if name.startswith(("e", "w", "docker", "veth")) and name != "erspan0"]
    assert wrote == str(errno.EROFS)
    assert listed == []


def test_the_end_of_a_jailed_child_is_passed_on(prepared, tmp_path, until_closed):
    def ends(action):
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            plan = Plan(
                tier=2,
                keep_descriptors=(),
                folder=str(tmp_path),
                cpu_seconds=10,
                memory_bytes=1 << 30,
                file_bytes=0,
                parent_pid=parent,
            )
            confine(plan, prepared)
            action()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def crash():
        import ctypes

        ctypes.string_at(0)

    assert ends(lambda: os._exit(0)) == 0
    assert ends(lambda: os._exit(7)) == 7
    assert ends(crash) == -signal.SIGSEGV


def test_killing_the_process_that_waits_kills_the_jailed_child(prepared, tmp_path, until_closed):
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        plan = Plan(
            tier=2,
            keep_descriptors=(writing,),
            folder=str(tmp_path),
            cpu_seconds=10,
            memory_bytes=1 << 30,
            file_bytes=0,
            parent_pid=parent,
        )
        confine(plan, prepared)
        os.write(writing, b"ready")
        time.sleep(60)
    os.close(writing)
    assert os.read(reading, 5) == b"ready"

    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

    assert until_closed(reading) == b""


def test_the_processes_of_a_jailed_child_cannot_be_signalled_even_by_number(in_child):
    parent = os.getpid()

    outcome = in_child(lambda: os.kill(parent, 0), tier=2)

    assert outcome.error in ("PermissionError", "ProcessLookupError")
