"""Which files a confined child reads, and that it writes none."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

import attn_kata
from attn_kata.sandbox import landlock, prepare, release


def test_the_answers_cannot_be_read_or_listed(in_child, answers):
    read = in_child((answers / "solution.py").read_text)
    listed = in_child(lambda: os.listdir(answers))

    assert read.error == "PermissionError"
    assert listed.error == "PermissionError"


def test_this_package_cannot_be_read(in_child):
    outcome = in_child(Path(attn_kata.__file__).read_text)

    assert outcome.error == "PermissionError"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/proc/self/maps", "/proc/self/mem", "/proc/self/environ", "/proc/1/status", "/dev/tty", "~/"],
)
def test_files_of_the_system_and_the_user_cannot_be_read(in_child, path):
    path = os.path.expanduser(path)

    def action():
        return os.listdir(path) if path.endswith("/") else os.close(os.open(path, os.O_RDONLY))

    assert in_child(action).error in ("PermissionError", "FileNotFoundError")


def test_the_engine_cannot_be_read_through_proc(in_child):
    parent = os.getpid()

    outcomes = [
        in_child(lambda name=name: os.open(f"/proc/{parent}/{name}", os.O_RDONLY)).error
        for name in ("mem", "maps", "environ", "cmdline", "status", "fd")
    ]

    assert outcomes == ["PermissionError"] * 6


@pytest.mark.parametrize("tier", [1, 2])
@pytest.mark.parametrize(
    "flags", [os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND]
)
def test_no_file_can_be_opened_for_writing(in_child, tmp_path, tier, flags):
    victim = tmp_path / "victim"
    victim.write_text("precious")

    outcome = in_child(lambda: os.open(victim, flags), tier=tier)

    assert outcome.error in ("PermissionError", "OSError")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("tier", [1, 2])
def test_no_file_or_folder_can_be_made_moved_changed_or_deleted(in_child, tmp_path, tier):
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    victim.write_text("precious")
    folder.mkdir()
    before = victim.stat()
    tries = {
        "made": lambda: os.open(tmp_path / "new", os.O_CREAT | os.O_WRONLY),
        "folder made": lambda: os.mkdir(tmp_path / "new"),
        "linked": lambda: os.link(victim, tmp_path / "new"),
        "symlinked": lambda: os.symlink(victim, tmp_path / "new"),
        "pipe made": lambda: os.mkfifo(tmp_path / "new"),
        "renamed": lambda: os.rename(victim, tmp_path / "new"),
        "deleted": lambda: os.unlink(victim),
        "folder deleted": lambda: os.rmdir(folder),
        "truncated": lambda: os.truncate(victim, 0),
        "chmodded": lambda: os.chmod(victim, 0o777),
        "dated": lambda: os.utime(victim, (0, 0)),
        "attributed": lambda: os.setxattr(victim, "user.x", b"y"),
        "temporary": lambda: tempfile.TemporaryFile().close(),
    }

    def action():
        done = []
        for name, attempt in tries.items():
            try:
                attempt()
                done.append(name)
            except OSError:
                pass
        return done

    assert in_child(action, tier=tier).value == []
    assert sorted(os.listdir(tmp_path)) == ["folder", "victim"]
    assert victim.read_text() == "precious"
    assert (victim.stat().st_mode, victim.stat().st_mtime) == (before.st_mode, before.st_mtime)


def test_what_python_needs_can_be_read(in_child):
    def action():
        import this_is_not_there  # noqa: F401

    def reads():
        import wave
        import xml.dom.minidom

        with open(os.devnull, "w") as nowhere:
            nowhere.write("gone")
        return [bool(wave), bool(xml), len(open("/dev/urandom", "rb").read(4)), bool(open("/proc/cpuinfo").read())]

    assert in_child(reads).value == [True, True, 4, True]
    assert in_child(action).error == "ModuleNotFoundError"


def test_a_folder_around_something_denied_gets_one_rule_per_entry(tmp_path):
    for name in ("torch", "numpy", "answers"):
        (tmp_path / name).mkdir()
    (tmp_path / "torch" / "init.py").write_text("")
    (tmp_path / "alias").symlink_to(tmp_path / "answers")

    allowed, split = landlock.without([str(tmp_path)], [str(tmp_path / "answers")])

    assert allowed == [str(tmp_path / "numpy"), str(tmp_path / "torch")]
    assert split == [str(tmp_path)]


def test_an_installed_package_is_denied_where_its_neighbours_are_imported(in_child, tmp_path, monkeypatch):
    for name in ("neighbour", "attn_kata_extra", "attn_kata-1.0.dist-info"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("value = 7")
    monkeypatch.syspath_prepend(str(tmp_path))
    once = prepare(tier=1)

    def action():
        import neighbour

        unread = []
        for name in ("attn_kata_extra", "attn_kata-1.0.dist-info"):
            try:
                (tmp_path / name / "__init__.py").read_text()
            except PermissionError:
                unread.append(name)
        return [neighbour.value, unread]

    outcome = in_child(action, prepared=once)
    release(once)

    assert outcome.value == [7, ["attn_kata_extra", "attn_kata-1.0.dist-info"]]
    assert "neighbour" not in sys.modules


@pytest.mark.parametrize(
    ("version", "rights"),
    [
        (1, (0x1FFF, 0, 0)),
        (2, (0x3FFF, 0, 0)),
        (3, (0x7FFF, 0, 0)),
        (4, (0x7FFF, 3, 0)),
        (5, (0xFFFF, 3, 0)),
        (6, (0xFFFF, 3, 3)),
        (7, (0xFFFF, 3, 3)),
    ],
)
def test_each_version_refuses_what_it_knows(version, rights):
    assert landlock.handled(version) == rights


@pytest.mark.parametrize("version", range(1, 8))
def test_an_older_versions_ruleset_can_be_built(version):
    if landlock.abi() < version:
        pytest.skip("this kernel's Landlock is older")

    os.close(landlock.create_ruleset(version, ["/usr/lib", "/dev/null"]))
