"""Whose a file is, and which file is meant: by the names that real systems give, and for hostile folders and zips."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from attn_kata import catalog, files
from attn_kata.classroom import students, submissions, tree
from attn_kata.classroom.submissions import Submission
from attn_kata.errors import UsageError

from .conftest import CANVAS, CANVAS_LATE, KATA, MOODLE, MOODLE_FLAT, write_files, write_zip

DEFINES = "def scaled_dot_product_attention(q, k, v):\n    return v\n"
OTHER = "x = 1\n"


def collected(path: Path) -> tuple[dict[str, Submission], list[str]]:
    """The submissions by student; each was read while the zip was open."""
    with tree.opened(path) as found:
        every = submissions.collect(found, catalog.find(KATA))
        for each in every.submissions:
            if not each.problem:
                each.read()
    return {each.student: each for each in every.submissions}, every.left_out


def named(path: Path) -> dict[str, str]:
    """The chosen file of each student, or the problem."""
    return {name: each.problem or each.file for name, each in collected(path)[0].items()}


def test_moodle_with_folders_and_without(tmp_path: Path) -> None:
    folders = write_zip(
        tmp_path / "moodle.zip",
        {
            MOODLE.format(name="Anna Schmidt", id=4711, file="mha.py"): DEFINES,
            MOODLE.format(name="Anna Schmidt", id=4712, file="mha.py"): DEFINES,
            MOODLE.format(name="José D'Arc_Vega", id=12, file="a.py"): DEFINES,
            MOODLE.format(name="José D'Arc_Vega", id=12, file="notes.pdf"): "%PDF",
            "Ben Ames_13_assignsubmission_onlinetext_/onlinetext.html": "<p>hi",
        },
    )
    flat = write_zip(tmp_path / "flat.zip", {MOODLE_FLAT.format(name="Anna Schmidt", id=4711, file="sdpa.py"): DEFINES})

    assert list(named(folders)) == ["Anna Schmidt (4711)", "Anna Schmidt (4712)", "Ben Ames", "José D'Arc_Vega"]
    assert named(folders)["José D'Arc_Vega"].endswith("/a.py")
    assert "no Python file" in named(folders)["Ben Ames"]
    assert list(named(flat)) == ["Anna Schmidt"]


def test_canvas_with_late_work_and_two_files(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "submissions.zip",
        {
            CANVAS.format(name="schmidtanna", id=4711, file="sdpa-1.py"): DEFINES,
            CANVAS_LATE.format(name="amesben", id=12, file="work.py"): DEFINES,
            "amesben_LATE_12_99999_helper.py": OTHER,
            CANVAS.format(name="coxdee", id=13, file="answer.docx"): "PK",
        },
    )

    assert named(path) == {
        "amesben": "amesben_LATE_12_9812_work.py",
        "coxdee": "There is no Python file and no notebook. There is 'coxdee_13_9813_answer.docx'.",
        "schmidtanna": "schmidtanna_4711_984711_sdpa-1.py",
    }


def test_canvas_with_hidden_names_text_entries_and_second_versions(tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "submissions.zip",
        {
            "anon_Ab3xZ_98765_sdpa.py": DEFINES,
            "LATE_anon_q7Wp2_98766_sdpa.py": DEFINES,
            "de_lacruzana_LATE_14_98767_sdpa.py": DEFINES,
            "coxdee_13_text.html": "<p>def scaled_dot_product_attention",
            "amesben_12_98768_sdpa-2.py": DEFINES,
            "amesben_12_98769_old.py": DEFINES,
        },
    )

    assert named(path) == {
        "amesben": "amesben_12_98768_sdpa-2.py",
        "anon Ab3xZ": "anon_Ab3xZ_98765_sdpa.py",
        "anon q7Wp2": "LATE_anon_q7Wp2_98766_sdpa.py",
        "coxdee": "There is no Python file and no notebook. There is 'coxdee_13_text.html'.",
        "de_lacruzana": "de_lacruzana_LATE_14_98767_sdpa.py",
    }


def test_numbers_in_a_files_name_do_not_join_students(tmp_path: Path) -> None:
    path = write_files(tmp_path / "work", {f"hw_1_2_{name}.py": DEFINES for name in ("anna", "ben")})

    assert named(path) == {"hw_1_2_anna": "hw_1_2_anna.py", "hw_1_2_ben": "hw_1_2_ben.py"}


def test_repositories_of_github_classroom_below_one_folder(tmp_path: Path) -> None:
    root = tmp_path / "cloned"
    for name in ("anna-x", "ben", "bea"):
        write_files(
            root / "attention-submissions" / f"attention-{name}",
            {"sdpa.py": DEFINES, ".git/HEAD": "ref", "tests/test_sdpa.py": OTHER, ".github/x.py": DEFINES},
        )

    assert named(root) == {name: f"attention-submissions/attention-{name}/sdpa.py" for name in ("anna-x", "bea", "ben")}


def test_the_file_that_defines_what_is_asked_is_meant_and_doubt_is_said(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": DEFINES, "metadata": {}, "outputs": []}
    notebook = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]})
    path = write_files(
        tmp_path / "class",
        {
            "notebook/work.ipynb": notebook,
            "helper/a.py": OTHER,
            "helper/b.py": DEFINES,
            "by_name/sdpa.py": DEFINES,
            "by_name/old.py": DEFINES,
            "versions/1/sdpa.py": DEFINES,
            "versions/2/sdpa.py": DEFINES,
            "versions/old.py": DEFINES,
            "doubt/a.py": DEFINES,
            "doubt/b.py": DEFINES,
            "neither/a.py": OTHER,
            "neither/b.py": OTHER,
            "wrong_name/only.py": OTHER,
            "flat.py": DEFINES,
            "readme.txt": "",
            "class.db/x.py": DEFINES,
            "results/class.db": "",
            "results/students/x.py": DEFINES,
        },
    )
    (path / "empty").mkdir()
    files_of, left_out = named(path), collected(path)[1]

    assert files_of.pop("empty") == "There is no Python file and no notebook."
    assert files_of.pop("doubt") == (
        "2 files define scaled_dot_product_attention, and none of them is called sdpa.py: 'doubt/a.py', 'doubt/b.py'."
    )
    assert files_of.pop("versions").endswith(
        "2 of them are called sdpa.py: 'versions/1/sdpa.py', 'versions/2/sdpa.py'."
    )
    assert files_of.pop("neither").startswith("None of 2 files defines scaled_dot_product_attention: 'neither/a.py'")
    assert "results" not in files_of, "the results of a class are not a student"
    assert files_of == {
        "by_name": "by_name/sdpa.py",
        "class.db": "class.db/x.py",
        "flat": "flat.py",
        "helper": "helper/b.py",
        "notebook": "notebook/work.ipynb",
        "wrong_name": "wrong_name/only.py",
    }
    assert left_out == ["'readme.txt' is neither Python nor a notebook."]


def test_nothing_outside_of_a_folder_is_read_and_names_are_made_safe(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text(DEFINES)
    root = write_files(tmp_path / "class", {"line\nbreak\u202e\x1b[2J/x.py": DEFINES, "=HYPERLINK(1)/x.py": DEFINES})
    for name in ("file", "folder", "inside"):
        (root / name).mkdir()
    (root / "file" / "x.py").symlink_to(secret)
    (root / "folder" / "x").symlink_to(tmp_path)
    (root / "inside" / "x.py").symlink_to(root / "=HYPERLINK(1)" / "x.py")
    os.mkfifo(root / "pipe.py")
    (root / "large.py").write_bytes(b"#" * (50 << 20))
    (root / os.fsdecode(b"\xff\xfe.py")).write_text(DEFINES)
    with tree.opened(root) as found:
        every = {each.student: each for each in submissions.collect(found, catalog.find(KATA)).submissions}

    assert every["file"].problem == "'file/x.py' is a link to a place outside of the folder."
    assert "no Python file" in every["folder"].problem
    assert every["inside"].file == "inside/x.py"
    assert "line break" in every
    assert {"=HYPERLINK(1)"} <= set(every)
    for name, said in (("pipe", "is not a regular file"), ("large", "has 52,428,800 bytes")):
        with pytest.raises(UsageError, match=said):
            every[name].read()
    assert all(each.key.encode() for each in every.values())


def test_a_hostile_zip_reads_nothing_that_it_should_not(tmp_path: Path) -> None:
    path = tmp_path / "class.zip"
    link = zipfile.ZipInfo("eve/sdpa.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good/sdpa.py", DEFINES)
        archive.writestr("../../outside.py", DEFINES)
        archive.writestr("/etc/absolute.py", DEFINES)
        archive.writestr("..\\windows.py", DEFINES)
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bomb/sdpa.py", b"\0" * (64 << 20))
        archive.writestr("broken/sdpa.py", "BROKEN" * 9)
        archive.writestr("locked/sdpa.py", DEFINES)
        archive.getinfo("locked/sdpa.py").flag_bits |= 1  # as of an encrypted one
    # A member whose size is a lie (100 bytes, unpacking to 64 MB), and one whose bytes are damaged.
    data = bytearray(path.read_bytes())
    size = (64 << 20).to_bytes(4, "little")
    for at in [at for at in range(len(data)) if data.startswith(size, at)]:
        data[at : at + 4] = (100).to_bytes(4, "little")
    damaged = data.index(b"broken/sdpa.py") + len(b"broken/sdpa.py")
    data[damaged : damaged + 6] = b"\xff" * 6
    path.write_bytes(data)
    with tree.opened(path) as found:
        every = submissions.collect(found, catalog.find(KATA))
        by_name = {each.student: each for each in every.submissions}
        good = by_name["good"].read()
        for name in ("bomb", "broken"):
            with pytest.raises(UsageError):
                by_name[name].read()
        with pytest.raises(UsageError, match=r"'locked/sdpa.py' is encrypted. Unpack the zip"):
            by_name["locked"].read()

    assert good.code == DEFINES.encode()
    assert by_name["eve"].problem == "'eve/sdpa.py' is a symbolic link, which no zip of submissions needs."
    outside = [each for each in every.submissions if "lies outside of the zip" in each.problem]
    assert len(outside) == 3
    assert len(by_name) == 8
    assert files.MOST_BYTES < 64 << 20


def test_names_are_told_apart_and_prefixes_end_at_a_hyphen() -> None:
    twice = [students.of_file("ann.py"), students.of_folder("Ann"), students.of_folder("ben")]

    assert students.told_apart(twice) == {"ann.py": "ann (ann.py)", "Ann": "Ann (Ann)", "ben": "ben"}
    assert students.shared_prefix(["hw-anna", "hw-anton"]) == "hw-"
    assert students.shared_prefix(["hw-anna"]) == ""
    assert students.of_folder("\u202e\n").name == students.UNNAMED


@pytest.mark.parametrize("content", [b"", b"no zip", None])
def test_what_is_no_class_is_said(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.zip"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"neither a folder nor a zip|There is no folder"), tree.opened(path):
        pass
