"""What is left of root, and which user's files it opens."""

from __future__ import annotations

import ctypes
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from attn_kata.sandbox import IsolationError, privileges

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to give away")


@pytest.mark.parametrize("tier", [1, 2])
def test_no_capability_is_left(in_child, tier):
    outcome = in_child(privileges.capabilities, tier=tier)

    assert outcome.value == 0
    assert outcome.in_force["capabilities_dropped"] is True


def test_no_privilege_can_be_gained(in_child):
    outcome = in_child(lambda: ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))

    assert outcome.value == 1


@as_root
def test_the_real_user_of_roots_child_is_one_that_nobody_has(in_child):
    real, _, _ = in_child(os.getresuid).value

    assert real != 0


@as_root
@pytest.mark.parametrize("change", [lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0)])
def test_roots_child_cannot_take_its_ids_back(in_child, change):
    assert in_child(change).error == "PermissionError"


@as_root
def test_groups_are_dropped(in_child):
    assert in_child(os.getgroups).value == []


@as_root
@pytest.mark.parametrize("tier", [1, 2])
def test_a_user_that_nobody_is_can_be_taken_altogether(in_child, prepared, tier):
    if prepared.identity is None:
        pytest.skip(prepared.root_stays)
    private = replace(prepared, identity=replace(prepared.identity, reads_as=None))

    outcome = in_child(os.getresuid, tier=tier, prepared=private)

    assert outcome.in_force["uid_dropped"] is True
    assert outcome.in_force["tier"] == min(tier, prepared.available.highest_tier)
    assert 0 not in outcome.value
    assert len(set(outcome.value)) == 1


@pytest.fixture
def open_folder():
    """A folder that every user reaches."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@as_root
def test_files_open_to_everybody_let_the_user_go_altogether(open_folder):
    identity = privileges.choose_identity([str(open_folder)])

    assert isinstance(identity, privileges.Identity)
    assert identity.reads_as is None
    assert identity.note is None


@as_root
def test_files_closed_to_others_keep_their_owner_for_reading_and_say_so(open_folder):
    closed = open_folder / "home" / "lib"
    closed.mkdir(parents=True)
    closed.parent.chmod(0o700)

    identity = privileges.choose_identity([str(closed)])

    assert isinstance(identity, privileges.Identity)
    assert identity.reads_as == 0
    assert "readable to root only" in identity.note


@as_root
def test_a_package_installed_under_a_strict_umask_keeps_its_owner_for_reading(open_folder):
    (open_folder / "torch").mkdir(mode=0o700)

    identity = privileges.choose_identity([str(open_folder)])

    assert isinstance(identity, privileges.Identity)
    assert identity.reads_as == 0


@as_root
def test_files_of_one_other_user_are_read_as_that_user(open_folder):
    closed = open_folder / "home"
    closed.mkdir(mode=0o700)
    os.chown(closed, 1234, 1234)

    identity = privileges.choose_identity([str(closed)])

    assert isinstance(identity, privileges.Identity)
    assert identity.reads_as == 1234


@as_root
def test_files_that_no_single_user_reads_stop_the_grading_before_it_starts(open_folder):
    for owner in (1234, 1235):
        closed = open_folder / str(owner)
        closed.mkdir(mode=0o700)
        os.chown(closed, owner, owner)

    with pytest.raises(IsolationError, match="run as their owner"):
        privileges.choose_identity([str(open_folder / "1234"), str(open_folder / "1235")])
