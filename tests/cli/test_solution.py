"""`attn-kata solution`."""

from __future__ import annotations

import sys

import pytest

from attn_kata import catalog

pytestmark = pytest.mark.skipif(not catalog.find("sdpa").solution.exists(), reason="sdpa has no reference yet")


def test_before_a_pass_it_stays_closed_and_says_how_to_go_on(run):
    run("start", "sdpa")
    done = run("solution")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "attn-kata hint sdpa" in done.stderr
    assert "attn-kata solution sdpa --give-up" in done.stderr


def test_giving_up_shows_the_reference_after_the_attempt_and_is_remembered(run, folder):
    run("start", "sdpa")
    (folder / "sdpa.py").write_text("my_own = 'attempt \x1b[2J[bold]'\n")
    done = run("solution", "--give-up")

    assert done.returncode == 0
    yours, reference = done.stdout.index("Yours: sdpa.py"), done.stdout.index("Reference: sdpa.py")
    assert yours < done.stdout.index("my_own = 'attempt [bold]'") < reference
    assert "def scaled_dot_product_attention" in done.stdout[reference:]
    assert "\x1b" not in done.stdout
    assert "saw the reference before passing" in run("status").stdout


def test_in_a_wide_terminal_both_stand_side_by_side(run, folder):
    run("start", "sdpa")
    done = run("solution", "--give-up", COLUMNS="200")

    first = done.stdout.splitlines()[0]
    assert "Yours: sdpa.py" in first
    assert "Reference: sdpa.py" in first


def test_without_an_attempt_the_reference_stands_alone(run):
    done = run("solution", "sdpa", "--give-up")

    assert done.returncode == 0
    assert done.stdout.startswith("Reference: sdpa.py")


def test_in_a_terminal_it_is_coloured_unless_the_person_wants_none(environment, folder):
    pexpect = pytest.importorskip("pexpect")
    printed = [
        pexpect.run(
            f"{sys.executable} -m attn_kata solution sdpa --give-up",
            cwd=str(folder),
            env={**environment, "TERM": "xterm-256color", **variables},
        ).decode()
        for variables in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"})
    ]

    assert ["\x1b[" in text for text in printed] == [True, False, False]


def test_the_attempt_that_passed_is_shown_and_not_another_stub(run, folder):
    run("start", "sdpa", "--dir", "there")
    mine = folder / "mine.py"
    mine.write_bytes(catalog.find("sdpa").solution.read_bytes() + b"# it is mine\n")
    assert run("grade", "mine.py", "--kata", "sdpa").returncode == 0

    assert "# it is mine" in run("solution", "sdpa").stdout


def test_no_line_of_code_is_broken_whatever_the_width(run):
    shown = run("solution", "mha", "--give-up", COLUMNS="60").stdout

    for line in catalog.find("mha").solution.read_text("utf-8").splitlines():
        assert line.rstrip() in shown.splitlines()
