"""What is in force is what is said, also where a layer is missing, and nothing starts where one fails."""

from __future__ import annotations

import errno
import importlib
import os
import platform
import socket
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from attn_kata.sandbox import confinement, is_current, landlock, libc, prepare, probe, release, seccomp
from attn_kata.sandbox.syscall_table import NUMBERS

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become an ordinary user")


def refuse(*names, code=errno.ENOSYS):
    """Make the kernel answer these calls as an older kernel, or a container that forbids them, would."""
    numbers = NUMBERS[platform.machine()] | {"landlock_create_ruleset": 444}
    steps = [seccomp.Instruction(seccomp.BPF_LD_W_ABS, 0, 0, 0)]
    for name in names:
        steps.append(seccomp.Instruction(seccomp.BPF_JEQ, 0, 1, numbers[name]))
        steps.append(seccomp.Instruction(seccomp.BPF_RET, 0, 0, seccomp.SECCOMP_RET_ERRNO | code))
    steps.append(seccomp.Instruction(seccomp.BPF_RET, 0, 0, seccomp.SECCOMP_RET_ALLOW))
    libc.prctl("PR_SET_NO_NEW_PRIVS", 38, 1)
    seccomp.load(seccomp.Filter(tuple(steps)).for_process(0))


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def what_is_open(tmp_path):
    """Which of the harms a child can do, by name."""

    def fork():
        if os.fork() == 0:
            os._exit(0)

    tries = {
        "fork": fork,
        "network": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "read": lambda: os.close(os.open("/etc/passwd", os.O_RDONLY)),
        "write": lambda: os.close(os.open(tmp_path / "victim", os.O_WRONLY)),
        "empty": lambda: os.truncate(tmp_path / "victim", 0),
        "create": lambda: os.close(os.open(tmp_path / "new", os.O_CREAT | os.O_WRONLY)),
    }
    done = []
    for name, attempt in tries.items():
        try:
            attempt()
            done.append(name)
        except OSError:
            pass
    return done


@pytest.fixture
def victim():
    """A folder that everybody may write to, as far as modes say, and that every user can enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "victim").write_text("precious")
        (folder / "victim").chmod(0o666)
        folder.chmod(0o777)
        yield folder


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_the_tier_that_was_asked_for_is_in_force_where_everything_is_there(in_child, tier):
    if probe().highest_tier < 2:
        pytest.skip("this system lacks a layer")

    in_force = in_child(lambda: None, tier=tier).in_force

    assert in_force["tier"] == tier
    assert (in_force["landlock_abi"] > 0, in_force["seccomp"], in_force["namespaces"]) == (tier > 0, tier > 0, tier > 1)


def test_a_guarded_child_has_nothing_open(in_child, victim):
    assert in_child(lambda: what_is_open(victim)).value == []


def test_without_landlock_the_tier_is_0_files_are_read_and_none_is_written(in_child, victim):
    outcome = in_child(lambda: what_is_open(victim), first=lambda: refuse("landlock_create_ruleset"))

    assert outcome.value == ["read"]
    assert (outcome.in_force["tier"], outcome.in_force["landlock_abi"], outcome.in_force["seccomp"]) == (0, 0, True)
    assert any(note.startswith("No Landlock") for note in outcome.in_force["notes"])


def test_a_landlock_that_does_not_see_truncation_is_helped_by_seccomp(in_child, victim, monkeypatch):
    monkeypatch.setattr(landlock, "abi", lambda: 1)

    outcome = in_child(lambda: what_is_open(victim), first=lambda: None)

    assert outcome.value == []
    assert (outcome.in_force["tier"], outcome.in_force["landlock_abi"]) == (1, 1)


def test_without_seccomp_the_tier_is_0_and_files_stay_closed(in_child, victim):
    outcome = in_child(lambda: what_is_open(victim), first=lambda: refuse("seccomp"))

    assert outcome.value == ["fork", "network"]
    assert (outcome.in_force["tier"], outcome.in_force["seccomp"]) == (0, False)
    assert any(note.startswith("No seccomp") for note in outcome.in_force["notes"])


def test_without_both_the_notes_say_both(in_child, victim):
    outcome = in_child(lambda: None, first=lambda: refuse("seccomp", "landlock_create_ruleset"))

    assert outcome.in_force["tier"] == 0
    assert [note.split(" (")[0] for note in outcome.in_force["notes"]][:2] == ["No Landlock", "No seccomp"]


def test_without_namespaces_tier_2_becomes_tier_1_and_says_so(in_child, victim):
    outcome = in_child(lambda: what_is_open(victim), tier=2, first=lambda: refuse("unshare", code=errno.EPERM))

    assert outcome.value == []
    assert (outcome.in_force["tier"], outcome.in_force["namespaces"]) == (1, False)
    assert any(note.startswith("No namespaces") for note in outcome.in_force["notes"])


def test_without_landlock_a_jail_covers_what_is_denied(in_child, victim):
    def action():
        return [what_is_open(victim), os.listdir("/proc")]

    outcome = in_child(action, tier=2, first=lambda: refuse("landlock_create_ruleset"))
    if not outcome.in_force["namespaces"]:
        pytest.skip("no namespaces here")

    assert outcome.value == [["read"], []]
    assert outcome.in_force["tier"] == 0


@as_root
@pytest.mark.parametrize("tier", [0, 1, 2])
def test_an_ordinary_user_gets_the_same(in_child, victim, tier):
    outcome = in_child(lambda: what_is_open(victim), tier=tier, folder=victim, first=become_nobody)

    if outcome.in_force["tier"] == tier > 0:
        assert outcome.value == []
        assert outcome.in_force["capabilities_dropped"]
    assert outcome.in_force["tier"] == tier or any(note.startswith("No ") for note in outcome.in_force["notes"])
    assert not outcome.in_force["uid_dropped"]


@as_root
def test_an_ordinary_users_child_still_starts_threads(in_child, victim):
    def action():
        import threading

        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        return "joined"

    assert in_child(action, folder=victim, first=become_nobody).value == "joined"


def test_a_layer_that_fails_stops_the_child(in_child, prepared):
    nowhere = os.open(os.devnull, os.O_RDONLY)
    no_ruleset = in_child(lambda: "ran", prepared=replace(prepared, ruleset=nowhere))
    nonsense = seccomp.Filter((seccomp.Instruction(0xFFFF, 0, 0, 0),))
    no_filter = in_child(lambda: "ran", prepared=replace(prepared, filter=nonsense))
    os.close(nowhere)

    assert (no_ruleset.error, no_ruleset.value) == ("IsolationError", None)
    assert no_ruleset.text.startswith("Landlock")
    assert (no_filter.error, no_filter.value) == ("IsolationError", None)
    assert no_filter.text.startswith("seccomp")


def test_a_tier_that_was_not_prepared_stops_the_child(in_child, prepared):
    outcome = in_child(lambda: "ran", tier=2, prepared=replace(prepared, tier=1))

    assert (outcome.error, outcome.value) == ("IsolationError", None)


def test_probing_is_cheap_and_starts_nothing(monkeypatch):
    monkeypatch.setattr(os, "fork", None)
    probe()
    took = []
    for _ in range(5):
        before = time.perf_counter()
        probe()
        took.append(time.perf_counter() - before)

    assert min(took) < 0.001


def test_a_package_that_comes_later_makes_what_was_prepared_out_of_date(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    (folder / "attn_kata_extra").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))
    once = prepare(tier=1)
    before = is_current(once)
    os.utime(folder, (1, 1))

    after = is_current(once)
    release(once)

    assert (before, after) == (True, False)


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_elsewhere_only_tier_0_is_there(monkeypatch, system):
    monkeypatch.setattr(sys, "platform", system)

    available = probe()

    assert (available.highest_tier, available.landlock_abi, available.seccomp) == (0, 0, False)
    assert len(available.notes) == 1


def test_the_package_imports_without_the_modules_that_windows_lacks(monkeypatch):
    from attn_kata.sandbox import limits

    monkeypatch.setitem(sys.modules, "resource", None)
    try:
        without = importlib.reload(limits)
        notes = without.set_limits(cpu_seconds=1, memory_bytes=1, file_bytes=1, private_user=False)
    finally:
        monkeypatch.undo()
        importlib.reload(limits)

    assert notes == ["This system has no resource limits: only the deadline stops an attempt."]
    assert confinement.limits.resource is not None
