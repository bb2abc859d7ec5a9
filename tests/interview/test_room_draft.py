"""The room's text beside the file on the disk, and the colours: without a screen."""

from __future__ import annotations

import os
import resource
import tempfile

import pytest

from attn_kata.errors import UsageError
from attn_kata.interview.attempts import strays, temporary
from attn_kata.interview.draft import Draft, FileChanged
from attn_kata.interview.room import highlight


@pytest.fixture
def draft(folder):
    path = folder / "sdpa.py"
    path.write_bytes(b"base")
    return Draft(path, b"base")


@pytest.mark.parametrize(
    ("mine", "theirs", "kind"),
    [
        (b"base", b"base", "same"),
        (b"mine", b"base", "mine"),
        (b"base", b"theirs", "theirs"),
        (b"mine", b"theirs", "conflict"),
        (b"both", b"both", "same"),
        (b"mine", None, "gone"),
        (b"base", b"", "gone"),
        (b"mine", b"\n", "gone"),
    ],
)
def test_what_changed_is_told_apart(draft, mine, theirs, kind):
    if theirs is None:
        draft.path.unlink()
    else:
        draft.path.write_bytes(theirs)

    assert draft.compare(mine).kind == kind


def test_a_file_that_changed_is_not_written_over(draft):
    draft.path.write_bytes(b"theirs")
    with pytest.raises(FileChanged):
        draft.write(b"mine")

    assert draft.path.read_bytes() == b"theirs"


def test_an_emptied_file_gets_its_text_again(draft):
    draft.path.write_bytes(b"")
    draft.write(b"base")

    assert draft.path.read_bytes() == b"base"


def test_what_comes_in_at_the_last_moment_is_set_aside(draft, monkeypatch):
    def link(old, new):
        draft.path.write_bytes(b"at the last moment")
        os_link(old, new)

    os_link = os.link
    monkeypatch.setattr(os, "link", link)
    draft.write(b"mine")

    assert draft.path.read_bytes() == b"mine"
    assert (draft.path.parent / "sdpa.file-1.py").read_bytes() == b"at the last moment"
    assert sorted(path.name for path in draft.path.parent.iterdir()) == ["sdpa.file-1.py", "sdpa.py"]


def test_a_link_stays_a_link_and_the_mode_stays(draft, folder):
    draft.path.chmod(0o600)
    link = folder / "link.py"
    link.symlink_to(draft.path)
    Draft(link, b"base").write(b"mine")

    assert link.is_symlink()
    assert draft.path.read_bytes() == b"mine"
    assert draft.path.stat().st_mode & 0o777 == 0o600


def test_a_folder_in_its_place_is_a_sentence(draft):
    draft.path.unlink()
    draft.path.mkdir()

    assert draft.compare(b"mine").kind == "gone"
    with pytest.raises(UsageError, match="cannot be saved"):
        draft.write(b"mine")


def test_the_same_copy_is_not_made_twice(draft):
    first, again, other = draft.aside(b"1", "room"), draft.aside(b"1", "room"), draft.aside(b"2", "room")

    assert first == again
    assert (first.name, other.name) == ("sdpa.room-1.py", "sdpa.room-2.py")


def test_half_a_copy_is_none(draft):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(UsageError, match="cannot be written: File too large"):
            draft.aside(b"x" * 5000, "room")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert [path.name for path in draft.path.parent.iterdir()] == [draft.path.name]


def test_half_a_text_among_the_temporary_files_is_not_offered_as_the_text(draft, tmp_path, monkeypatch):
    (elsewhere := tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            draft.in_temporary_folder(b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    left = list(elsewhere.iterdir())
    (elsewhere / f".{temporary(draft.path)}1.py.new").write_bytes(b"half")  # as a killed room leaves it
    whole = draft.in_temporary_folder(b"whole")

    assert left == []
    assert strays(draft.path) == [whole]
    assert whole.read_bytes() == b"whole"


def kinds(*lines: str) -> list[list[tuple[str, str]]]:
    return [
        [(line[start:end], kind) for start, end, kind in found]
        for line, found in zip(lines, highlight.spans(lines), strict=True)
    ]


def test_python_in_colours():
    assert kinds("def f(self): # why", "x = 'a' + f\"b\" + 1.5e3", "@torch.no_grad") == [
        [("def", "keyword"), ("f", "name"), ("self", "self"), ("# why", "comment")],
        [("'a'", "string"), ('f"b"', "string"), ("1.5e3", "number")],
        [("@torch.no_grad", "decorator")],
    ]


def test_a_string_goes_on_over_lines():
    assert kinds('"""one', "def", 'two""" + None') == [
        [('"""', "string"), ("one", "string")],
        [("def", "string")],
        [('two"""', "string"), ("None", "constant")],
    ]
