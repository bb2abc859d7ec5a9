"""Memory, processor time, descriptors: what an attempt can use up."""

from __future__ import annotations

import os
import resource
import signal

import pytest


@pytest.mark.parametrize("tier", [0, 1])
def test_memory_beyond_the_allowance_is_refused(in_child, tier):
    little = in_child(lambda: len(bytearray(64 << 20)), tier=tier, memory_bytes=256 << 20)
    much = in_child(lambda: len(bytearray(512 << 20)), tier=tier, memory_bytes=256 << 20)

    assert little.value == 64 << 20
    assert much.error == "MemoryError"


def test_an_endless_loop_that_ignores_signals_is_killed(in_child):
    def action():
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass

    before = os.times()
    outcome = in_child(action, tier=2, cpu_seconds=1)  # where another process waits for it

    after = os.times()

    assert os.WTERMSIG(outcome.status) == signal.SIGKILL
    assert after.children_user + after.children_system - before.children_user - before.children_system < 5


def test_descriptors_run_out_early(in_child):
    def action():
        opened = []
        try:
            while len(opened) < 1000:
                opened.append(os.dup(0))
        except OSError:
            for descriptor in opened:
                os.close(descriptor)
        return len(opened)

    assert in_child(action).value < 64


def test_limits_cannot_be_raised_again(in_child):
    def action():
        refused = []
        for name in ("CPU", "AS", "FSIZE", "NOFILE", "NPROC", "CORE", "MEMLOCK", "MSGQUEUE"):
            number = getattr(resource, f"RLIMIT_{name}")
            _, hard = resource.getrlimit(number)
            try:
                resource.setrlimit(number, (hard + 1, hard + 1))
            except (ValueError, OSError):
                refused.append(name)
        return refused

    assert len(in_child(action).value) == 8


def test_only_kept_descriptors_are_open(in_child):
    reading, writing = os.pipe()
    secret = os.open(__file__, os.O_RDONLY)

    def action():
        def is_open(descriptor):
            try:
                return bool(os.fstat(descriptor))
            except OSError:
                return False

        return [descriptor for descriptor in range(1024) if is_open(descriptor)]

    outcome = in_child(action, keep=(reading,))
    for descriptor in (reading, writing, secret):
        os.close(descriptor)

    assert outcome.value[:3] == [0, 1, 2]
    assert reading in outcome.value
    assert secret not in outcome.value
    assert len(outcome.value) == 5  # the standard streams, the one kept and the one that this is said on


def test_nothing_is_left_of_the_environment(in_child, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")

    outcome = in_child(lambda: [dict(os.environ), os.getcwd()])

    assert "SECRET_TOKEN" not in outcome.value[0]
    assert outcome.value[0]["HOME"] == outcome.value[1] == str(tmp_path)


def test_a_gpu_is_not_seen(in_child, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    seen = in_child(lambda: dict(os.environ)).value

    assert (seen["CUDA_VISIBLE_DEVICES"], seen["HIP_VISIBLE_DEVICES"]) == ("", "")
