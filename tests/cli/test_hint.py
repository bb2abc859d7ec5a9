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


SCALED = """\
def scaled_dot_product_attention(q, k, v):
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v
"""


def test_the_next_hint_is_about_the_mistake_that_was_found(run, folder):
    (folder / "sdpa.py").write_text(SCALED)
    run("grade", "sdpa.py")
    about, then = run("hint", "sdpa").stdout, run("hint", "sdpa").stdout

    assert about.startswith("sdpa, hint 4 of 4, about scale.missing\n")
    assert "The scale keeps the scores from growing" in about
    assert "The next hint: attn-kata hint sdpa" in about
    assert then.startswith("sdpa, hint 1 of 4\n")  # it was given, so the others follow in order


def test_after_the_mistake_is_mended_the_hints_follow_in_order(run, folder):
    (folder / "sdpa.py").write_text(SCALED)
    run("grade", "sdpa.py")
    (folder / "sdpa.py").write_text(SCALED.replace("(q @", "(q * q.shape[-1] ** -0.5 @"))
    run("grade", "sdpa.py")

    assert run("hint", "sdpa").stdout.startswith("sdpa, hint 1 of 4\n")


def test_a_mistake_has_the_hint_of_its_id_or_of_its_family():
    mha = catalog.find("mha")

    assert "square root" in mha.hints[mha.hint_for("scale.embed_dim") - 1]
    assert mha.hint_for("mask.inverted") == 4
    assert catalog.find("padding_mask").hint_for("mask.shifted") == 1
    assert mha.hint_for("inputs.modified") is None


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
