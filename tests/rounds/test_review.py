"""Marks are judged by lines, and by names where they give one; other words are for the reviewer to compare."""

from __future__ import annotations

import pytest

from attn_kata.errors import UsageError
from attn_kata.rounds import review
from attn_kata.rounds.spoiled import Bug, Spoiled


def bug(mistake: str, *lines: int) -> Bug:
    return Bug(mistake=mistake, lines=lines, wrong=("x",), right=("y",))


CODE = Spoiled(
    kata="sdpa",
    seed=0,
    style="plain",
    base="",
    source="line\n" * 20,
    bugs=(bug("scale.missing", 5), bug("softmax.query_axis", 6), bug("mask.causal", 12, 13)),
)


def judged(*marks: str) -> tuple[dict[str, bool | None], list[str], list[int]]:
    one = review.judge(CODE, [review.mark(text, CODE) for text in marks])
    return (
        {found.bug.mistake: found.named for found in one.found},
        [missed.mistake for missed in one.missed],
        [mark.first for mark in one.wrong],
    )


def test_everything_found_and_named():
    assert judged("5 scale.missing", "6: softmax", "12-13 why is it causal?") == (
        {"scale.missing": True, "softmax.query_axis": True, "mask.causal": None},
        [],
        [],
    )
    assert review.judge(CODE, [review.mark(f"{n} hm", CODE) for n in (5, 6, 12)]).done


def test_what_is_missed_and_what_is_no_mistake():
    assert judged("9 no idea", "lines 4-5, it is not scaled") == (
        {"scale.missing": None},
        ["softmax.query_axis", "mask.causal"],
        [9],
    )
    assert judged()[1] == ["scale.missing", "softmax.query_axis", "mask.causal"]


def test_the_name_decides_between_neighbours_and_then_the_line():
    assert judged("6 scale.missing", "5 softmax.query_axis")[0] == {"scale.missing": True, "softmax.query_axis": True}
    assert judged("6 wrong", "5 wrong too")[0] == {"scale.missing": None, "softmax.query_axis": None}
    assert judged("6 wrong")[:2] == ({"softmax.query_axis": None}, ["scale.missing", "mask.causal"])


def test_another_mistakes_name_is_not_right():
    found, _, _ = judged("12 scale.embed_dim")

    assert found == {"mask.causal": False}
    assert not review.judge(CODE, [review.mark(f"{n} mask.causal", CODE) for n in (5, 6, 12)]).done


def test_two_marks_at_one_mistake_are_not_an_error():
    assert judged("12 this", "13 and this")[2] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not begin with a line"),
        ("the scale", "'the scale' does not begin with a line"),
        ("12", "'12' says no mistake"),
        ("0 x", "There is no line '0': the code has 20 lines."),
        ("21 x", "There is no line '21'"),
        ("5-3 x", "There is no line '5-3'"),
        ("٣ x", "does not begin with a line"),
        ("5 " + "x" * 501, "at most 500 characters, not 501"),
    ],
)
def test_what_is_no_mark(text, said):
    with pytest.raises(UsageError) as wrong:
        review.mark(text, CODE)

    assert said in wrong.value.what
    assert "12 the softmax is over the queries" in (wrong.value.next_step or "")
