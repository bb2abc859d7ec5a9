"""Session, death with the parent, private memory, signals, new processes and threads."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import threading
import time

import pytest

from attn_kata.sandbox import Plan, confine, end, end_strays, guard_engine

PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE = 1, 2, 3, 4
PR_GET_CHILD_SUBREAPER = 37


def prctl(option, value=0):
    library = ctypes.CDLL(None, use_errno=True)
    result = library.prctl(option, ctypes.c_ulong(value), 0, 0, 0)
    return result if result >= 0 else -ctypes.get_errno()


def test_a_confined_child_cannot_fork(in_child):
    outcome = in_child(os.fork)

    assert (outcome.error, outcome.errno) == ("PermissionError", errno.EPERM)


def test_a_confined_child_cannot_start_a_program(in_child):
    outcome = in_child(lambda: subprocess.run(["/bin/true"], check=True))

    assert outcome.error == "PermissionError"


def test_a_confined_child_cannot_replace_itself_by_a_program(in_child):
    outcome = in_child(lambda: os.execv("/bin/true", ["true"]))

    assert outcome.error == "PermissionError"


@pytest.mark.parametrize("target", ["parent", "everybody", "own group", "process 1"])
def test_a_confined_child_cannot_signal_others(in_child, target):
    pid = {"parent": os.getpid(), "everybody": -1, "own group": 0, "process 1": 1}[target]

    outcome = in_child(lambda: os.kill(pid, 0))

    assert (outcome.error, outcome.errno) == ("PermissionError", errno.EPERM)


def test_a_confined_child_can_raise_a_signal_in_itself(in_child):
    def action():
        caught = []
        signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(number))
        signal.raise_signal(signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGUSR1)
        return caught

    assert in_child(action).value == [signal.SIGUSR1] * 2


def test_an_abort_in_a_confined_child_ends_it_by_that_signal(in_child):
    outcome = in_child(os.abort)

    assert os.WTERMSIG(outcome.status) == signal.SIGABRT


def test_a_confined_child_cannot_have_a_signal_sent_by_a_descriptor(in_child):
    reading, writing = os.pipe()

    def action():
        import fcntl

        fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())

    outcome = in_child(action, keep=(reading, writing))
    os.close(reading)
    os.close(writing)

    assert outcome.error == "PermissionError"


def test_a_confined_child_leads_its_own_session_and_cannot_leave_its_group(in_child):
    def action():
        alone = os.getsid(0) == os.getpgrp() == os.getpid()
        try:
            os.setpgid(0, os.getppid())
        except PermissionError:
            return alone

    assert in_child(action).value is True


@pytest.mark.parametrize("tier", [1, 2])
def test_threads_can_be_started(in_child, tier):
    def action():
        found = []
        threads = [threading.Thread(target=found.append, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(found)

    assert in_child(action, tier=tier).value == [0, 1, 2, 3]


def test_a_thread_bomb_is_bounded(in_child):
    def action():
        threading.stack_size(32768)
        end, count = threading.Event(), 0
        try:
            while count < 5000:
                threading.Thread(target=end.wait, daemon=True).start()
                count += 1
        except RuntimeError:
            pass
        end.set()
        return count

    outcome = in_child(action, memory_bytes=1 << 40)

    if os.geteuid() == 0:
        assert outcome.value <= 128
    assert outcome.value < 5000


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_the_child_dies_with_the_engine(prepared, tmp_path, until_closed, tier):
    reading, writing = os.pipe()
    engine = os.fork()
    if engine == 0:
        parent = os.getpid()
        if os.fork() == 0:
            plan = Plan(
                tier=tier,
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
        time.sleep(60)
        os._exit(1)
    os.close(writing)
    while os.read(reading, 5) != b"ready":
        pass

    os.kill(engine, signal.SIGKILL)
    os.waitpid(engine, 0)

    assert until_closed(reading) == b""


def test_a_child_whose_engine_is_gone_already_does_not_start(prepared, tmp_path, until_closed):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        plan = Plan(
            tier=1,
            keep_descriptors=(writing,),
            folder=str(tmp_path),
            cpu_seconds=10,
            memory_bytes=1 << 30,
            file_bytes=0,
            parent_pid=os.getppid() + 1,
        )
        confine(plan, prepared)
        os.write(writing, b"started")
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)

    assert until_closed(reading) == b""
    assert os.waitstatus_to_exitcode(status) == 1


def test_a_confined_child_cannot_outlive_the_engine_by_asking(in_child):
    assert in_child(lambda: prctl(PR_SET_PDEATHSIG, 0)).value == -errno.EPERM


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_the_memory_of_a_child_is_private(in_child, tier):
    assert in_child(lambda: prctl(PR_GET_DUMPABLE), tier=tier).value == 0


def test_a_confined_child_cannot_open_its_memory_to_others(in_child):
    assert in_child(lambda: prctl(PR_SET_DUMPABLE, 1)).value == -errno.EPERM


def in_an_engine(action):
    """What the action returns in a guarded process of its own."""
    reading, writing = os.pipe()
    engine = os.fork()
    if engine == 0:
        try:
            guard_engine(os.getppid())
            os.write(writing, repr(action()).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(engine, 0)
    said = os.read(reading, 10000).decode()
    os.close(reading)
    return said


def test_a_guarded_engine_is_private_adopts_orphans_and_dies_with_its_parent():
    def action():
        found = ctypes.c_int()
        adopts = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(found), 0, 0, 0)
        dies = ctypes.c_int()
        ctypes.CDLL(None).prctl(PR_GET_PDEATHSIG, ctypes.byref(dies), 0, 0, 0)
        return [prctl(PR_GET_DUMPABLE), adopts, found.value, dies.value]

    assert in_an_engine(action) == repr([0, 0, 1, 9])


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_ending_a_child_leaves_nothing_of_it(prepared, tmp_path, tier):
    def action():
        parent = os.getpid()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            plan = Plan(
                tier=tier,
                keep_descriptors=(writing,),
                folder=str(tmp_path),
                cpu_seconds=10,
                memory_bytes=1 << 30,
                file_bytes=0,
                parent_pid=parent,
            )
            confine(plan, prepared)
            os.write(writing, b"ready")
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(60)
        os.read(reading, 5)
        status = end(child)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return os.WTERMSIG(status)

    assert in_an_engine(action) == repr(9)


def test_a_daemon_that_left_the_group_in_tier_0_is_found_and_ended(prepared, tmp_path):
    def action():
        parent = os.getpid()
        bystander = os.fork()
        if bystander == 0:
            time.sleep(60)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            plan = Plan(
                tier=0,
                keep_descriptors=(writing,),
                folder=str(tmp_path),
                cpu_seconds=10,
                memory_bytes=1 << 30,
                file_bytes=0,
                parent_pid=parent,
            )
            confine(plan, prepared)
            if os.fork() == 0:
                os.setsid()
                os.write(writing, b"ready")
                time.sleep(60)
            time.sleep(60)
        os.read(reading, 5)
        end(child)
        ended = end_strays([bystander])
        alive = os.waitpid(bystander, os.WNOHANG) == (0, 0)
        end(bystander)
        return ended, alive

    assert in_an_engine(action) == repr((1, True))
