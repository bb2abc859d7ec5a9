"""`attn-kata hint`."""

from __future__ import annotations

import pytest

from attn_kata import catalog


def test_the_hints_come_one_after_the_other_and_the_last_one_stays(run):
    run("start", "sdpa")
    count = len(catalog.find("sdpa").hints)
    given = [run("hint").stdout for _ in range(count + 1)]

    assert [text.splitlines()[0] for text in given[:-1]] == [
        f"sdpa, hint {number} of {count}" for number in range(1, count + 1)
    ]
    assert given[-1] == given[-2]
    assert "attn-kata solution sdpa --give-up" in given[-1]
    assert max(len(line) for text in given for line in text.splitlines()) <= 80


def test_a_kata_can_be_named(run):
    assert run("hint", "MHA").stdout.startswith("mha, hint 1 of ")


def test_an_earlier_hint_can_be_read_again(run):
    first = run("hint", "sdpa").stdout
    run("hint", "sdpa")

    assert run("hint", "sdpa", "--number", "1").stdout == first
    assert run("hint", "sdpa").stdout.startswith("sdpa, hint 3 of ")


@pytest.mark.parametrize("number", ["0", "99", "one"])
def test_a_number_that_is_none_is_a_usage_error(run, number):
    done = run("hint", "sdpa", "--number", number)

    assert done.returncode == 2
    assert done.stdout == ""
    assert number in done.stderr


def test_without_a_kata_the_next_command_is_named(run):
    done = run("hint")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "attn-kata start sdpa" in done.stderr


@pytest.mark.parametrize("slug", catalog.slugs())
def test_no_hint_is_code(slug):
    for hint in catalog.find(slug).hints:
        assert "torch." not in hint
        assert "return " not in hint
