"""The questions after the code: drawn alike for one seed, judged with a tolerance, kind about what is no answer."""

from __future__ import annotations

import pytest

from attn_kata import quantities
from attn_kata.errors import UsageError
from attn_kata.interview import content, follow_ups


def drawn(slug: str, seed: int, count: int = 3) -> list[dict]:
    return follow_ups.draw(slug, content.of_kata(slug).follow_ups, seed=seed, count=count)


def test_one_seed_draws_the_same_questions_and_numbers():
    assert drawn("mha", 3) == drawn("mha", 3)
    assert len({str(drawn("mha", seed)) for seed in range(20)}) > 10


@pytest.mark.parametrize("seed", range(10))
def test_three_questions_are_one_of_each_kind(seed):
    assert sorted(one["kind"] for one in drawn("sdpa", seed)) == ["choice", "free", "numeric"]
    assert len(drawn("sdpa", seed, 2)) == 2


@pytest.mark.parametrize("slug", ["sdpa", "fused_qkv", "padding_mask", "causal_mask", "mha", "cross_attention"])
def test_the_right_answer_is_right_and_another_is_wrong(slug):
    for seed in range(30):
        for one in drawn(slug, seed):
            assert "{" not in one["ask"]
            assert "{" not in one["explain"]
            if one["kind"] == "numeric":
                assert follow_ups.judge(one, repr(float(one["answer"]))) is True
                assert follow_ups.judge(one, str(one["answer"] * 1.5)) is False
            elif one["kind"] == "choice":
                right = {place: follow_ups.judge(one, str(place)) for place in range(1, len(one["options"]) + 1)}
                assert [place for place, good in right.items() if good] == [one["answer"]]
            else:
                assert follow_ups.judge(one, "something") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1536", 1536),
        ("1_536", 1536),
        ("1,536", 1536),
        ("1.5e3", 1500),
        ("1.5k", 1500),
        ("2 GiB", 2**31),
        ("12 MiB", 12 * 2**20),
        ("33 %", 33),
        ("-2", -2),
        (".5", 0.5),
        ("4 bytes", 4),
        ("3 TFLOPs", 3e12),
        ("1 GB", 1e9),
        ("2^20", 2**20),
        ("2**10 KiB", 2**20),
        ("4 * 2^20 bytes", 2**22),
        ("1.3e9", 1.3e9),
        ("128 KiB", 2**17),
    ],
)
def test_numbers_as_people_write_them(text, value):
    assert quantities.parse(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "1 2",
        "1..2",
        "__import__('os')",
        "nan",
        "inf",
        "1e",
        "9" * 50 + "x",
        "٣",
        "2**3**4",
        "9^999",
        "2^2.5",
        "0x10",
    ],
)
def test_what_is_no_number_is_said_in_quotes(text):
    with pytest.raises(UsageError, match="is not a number") as wrong:
        quantities.parse(text)

    assert wrong.value.next_step


@pytest.mark.parametrize("text", ["0", "9", "x", "1.0", "-1", "²", "1" * 400])
def test_what_is_no_option(text):
    one = next(one for one in drawn("sdpa", 1) if one["kind"] == "choice")

    with pytest.raises(UsageError, match="is not one of the options"):
        follow_ups.judge(one, text)


def test_an_empty_answer_is_none():
    with pytest.raises(UsageError, match="The answer is empty"):
        follow_ups.judge(drawn("sdpa", 1)[0], "  ")
