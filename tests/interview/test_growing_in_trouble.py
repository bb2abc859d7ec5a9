"""The file of a grow chain is made unusable in its middle: a sentence says so, nothing is lost, and it goes on.

By real processes, on the machine's clock. Where the tests run as root, who may read everything, the process that must
not read a file gives that right away before it starts.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from attn_kata.interview import control, moments
from attn_kata.interview.control import Desk
from attn_kata.interview.plans import Plan
from attn_kata.interview.rounds import TALK, Round

from .conftest import RIGHT

ROUNDS = (
    Round(kind="write", kata="sdpa", minutes=15),
    Round(kind="grow", kata="padding_mask", minutes=15),
    Round(kind="grow", kata="mha", minutes=20),
    TALK,
)
READS_ALL = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
DROP = 24  # PR_CAPBSET_DROP


def reads_only_what_it_may() -> None:
    """For a child before it starts: from then on, root's rights to read every file are gone."""
    for right in READS_ALL:
        ctypes.CDLL(None).prctl(DROP, right, 0, 0, 0)


def may_be_unreadable(folder: Path) -> bool:
    """Whether there can be a file here that a child cannot read."""
    if os.geteuid() != 0:
        return True
    if sys.platform != "linux":
        return False
    file = folder / "closed"
    file.touch(0o000)
    read = subprocess.run(["cat", str(file)], preexec_fn=reads_only_what_it_may, capture_output=True, check=False)
    return read.returncode != 0


def gone(file: Path) -> None:
    file.unlink()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_link_to_nothing(file: Path) -> None:
    file.unlink()
    (file.parent / "nowhere.py").unlink(missing_ok=True)
    file.symlink_to("nowhere.py")


def a_link_to_itself(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def closed(file: Path) -> None:
    file.chmod(0o000)


def put_back(file: Path, source: bytes) -> None:
    """The person mends it by hand."""
    if file.is_dir():
        file.rmdir()
    elif os.path.lexists(file):
        file.unlink()
    file.write_bytes(source)


@pytest.fixture
def chain(desk, folder):
    """A desk on the machine's clock, and its session in the second part of a chain."""
    desk = Desk(store=desk.store, clock=moments.SystemClock())
    session = control.start(
        desk, Plan(name="g", title="", about="", rounds=ROUNDS), mode="mock", folder=folder / "i", seed=3
    )
    session = control.advance(desk, session.id)
    session.file.write_bytes(RIGHT)
    control.submit(desk, session.id, RIGHT)
    return desk, control.advance(desk, session.id)


@pytest.mark.parametrize(
    ("trouble", "why", "same_file", "restores"),
    [
        pytest.param(gone, "is gone", True, True, id="gone"),
        pytest.param(a_link_to_nothing, "is gone", True, True, id="link-to-nothing"),
        pytest.param(empty, "is empty", True, True, id="empty"),
        pytest.param(a_folder, "is a folder", False, False, id="a-folder"),
        pytest.param(a_link_to_itself, "cannot be read", True, False, id="link-to-itself"),
        pytest.param(closed, "cannot be read", False, False, id="closed"),
    ],
)
def test_a_file_that_cannot_be_read_is_said_and_comes_back(
    chain, folder, run, tmp_path, trouble, why, same_file, restores
):
    if trouble is closed:
        if not may_be_unreadable(tmp_path):
            pytest.skip("this root cannot give its rights away, so it can read every file")
        run = partial(run, preexec_fn=reads_only_what_it_may)
    desk, session = chain
    file, mine = session.file, session.file.read_bytes() + b"\n# mine\n"
    file.write_bytes(mine)
    run("status")
    trouble(file)

    tried = run("run")
    assert (tried.returncode, tried.stdout) == (2, "")
    assert f"i/sdpa.py' {why}" in tried.stderr
    assert "the newest saved version: attn-kata interview resume" in tried.stderr

    back = " ".join(run("resume").stdout.split())
    assert f"i/sdpa.py' {why}" in back
    assert ("so the newest saved version is restored" in back) == restores
    assert ("What you saved before is kept." in back) != restores
    assert (file.read_bytes() if restores else mine) == mine
    put_back(file, mine + b"# more\n")
    assert f"Your file: {file.relative_to(folder)}" in run("status").stdout
    assert desk.store.source(1, desk.store.load(1).kept[1]) == mine + b"# more\n"

    trouble(file)
    assert f"i/sdpa.py' {why}" in run("submit").stdout
    assert desk.store.source(1, desk.store.load(1).finals[1]) == mine + b"# more\n"
    assert run("next").returncode == 0
    third = desk.store.load(1)
    grown = third.file.read_bytes()

    assert (third.state, third.stage, third.file == file) == ("coding", 2, same_file)
    assert grown.startswith(mine.rstrip())
    assert b"# more" in grown
    assert grown.count(b"# ---- Part 3") == 1


def test_a_file_that_is_no_text_is_said_and_kept_and_grows(chain, run):
    desk, session = chain
    mine, odd = session.file.read_bytes(), b"\xff\xfe x = \x80\n"
    session.file.write_bytes(odd)
    tried = run("run")

    assert "not UTF-8: save the file as UTF-8" in tried.stdout
    assert "Traceback" not in tried.stdout + tried.stderr
    assert desk.store.source(1, desk.store.load(1).kept[1]) == odd

    session.file.write_bytes(mine)
    run("submit")
    session.file.write_bytes(odd)  # after it was handed in
    run("next")
    third = desk.store.load(1)

    assert desk.store.source(1, third.finals[1]) == mine
    assert third.file.read_bytes().startswith(odd.rstrip())
    assert b"# ---- Part 3" in third.file.read_bytes()


def test_an_emptied_file_is_not_what_is_taken_at_the_end(desk, clock, begin):
    session = begin()
    control.save(desk, session.id, RIGHT)
    session.file.write_bytes(b"\n")
    clock.goes(minutes=60)
    ticked = control.tick(desk, session.id)

    assert desk.store.source(session.id, ticked.session.finals[0]) == RIGHT
    assert "is empty: the newest version that was kept is taken." in ticked.news[0]
