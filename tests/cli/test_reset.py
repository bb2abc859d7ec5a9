"""`attn-kata reset`."""

from __future__ import annotations

import pytest


def test_the_old_file_is_kept_under_a_number_and_named(run, folder):
    run("start", "sdpa")
    for number, text in enumerate(("first", "second"), 1):
        (folder / "sdpa.py").write_text(text)
        done = run("reset")

        assert done.returncode == 0
        assert f"sdpa.bak{number}.py" in done.stdout
        assert (folder / f"sdpa.bak{number}.py").read_text() == text
    assert (folder / "sdpa.py").read_text("utf-8").startswith("# attn-kata: sdpa (standard)")
    assert sorted(path.name for path in folder.iterdir()) == ["sdpa.bak1.py", "sdpa.bak2.py", "sdpa.py"]


def test_the_level_of_the_old_stub_is_kept_unless_another_is_asked_for(run, folder):
    run("start", "sdpa", "--level", "guided")
    run("reset")
    assert "(guided)" in (folder / "sdpa.py").read_text("utf-8").splitlines()[0]

    run("reset", "--level", "blank")
    assert "(blank)" in (folder / "sdpa.py").read_text("utf-8").splitlines()[0]


@pytest.mark.parametrize("before", [[], ["start", "sdpa"]], ids=["nothing started", "start met the file"])
def test_without_an_argument_a_file_that_start_did_not_write_is_left_alone(run, folder, before):
    (folder / "sdpa.py").write_text("mine")
    if before:
        run(*before)
    done = run("reset")

    assert done.returncode == 2
    assert done.stderr.startswith("'sdpa.py' was not written by attn-kata start, so it was not replaced.\n")
    assert [path.name for path in folder.iterdir()] == ["sdpa.py"]
    assert run("reset", "sdpa").returncode == 0
    assert (folder / "sdpa.bak1.py").read_text() == "mine"


def test_a_link_keeps_leading_to_the_attempt(run, folder, tmp_path):
    (tmp_path / "real.py").write_text("mine")
    (folder / "sdpa.py").symlink_to(tmp_path / "real.py")
    done = run("reset", "sdpa")

    assert done.returncode == 0
    assert (folder / "sdpa.py").is_symlink()
    assert (tmp_path / "real.bak1.py").read_text() == "mine"


def test_without_an_attempt_the_next_command_is_named(run):
    done = run("reset", "sdpa")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "attn-kata start sdpa" in done.stderr


def test_without_a_kata_the_next_command_is_named(run):
    done = run("reset")

    assert done.returncode == 2
    assert done.stderr.startswith("You have not started a kata yet.\n")


def test_what_is_not_a_file_is_left_alone(run, folder):
    run("start", "sdpa")
    (folder / "sdpa.py").unlink()
    (folder / "sdpa.py").mkdir()
    done = run("reset")

    assert done.returncode == 2
    assert "folder" in done.stderr
    assert [path.name for path in folder.iterdir()] == ["sdpa.py"]
