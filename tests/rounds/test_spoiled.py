"""Spoiled code is proven by a grading, the same for a seed, and gives nothing away; a hunt's file is judged by the mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.engine.client import Engine
from attn_kata.errors import UsageError
from attn_kata.report.model import Report
from attn_kata.rounds import hunt, spoiled
from attn_kata.rounds.spoiled import Spoiled

KATA = catalog.find("sdpa")


@pytest.fixture(scope="module")
def grade(shared_engine: Engine) -> Callable[[str, bytes], Report]:
    return lambda slug, source: shared_engine.grade(slug, source, attempt="hunt.py")


@pytest.fixture(scope="module")
def made(grade) -> list[Spoiled]:
    """One with each number of mistakes."""
    return [spoiled.make(KATA, seed=1, bugs=bugs, grade=grade)[0] for bugs in (1, 2, 3, 4)]


def test_a_grading_names_the_mistakes_that_are_in_it_and_no_other(made, grade):
    for bugs, one in enumerate(made, 1):
        report = grade(one.kata, hunt.text(KATA, one).encode())

        assert len(one.mistakes) == bugs
        assert [{mistake.id for mistake in found.mistakes} for found in report.diagnosis] == [one.mistakes]


def test_one_seed_makes_the_same_code_and_another_one_other_code(made, grade):
    assert spoiled.make(KATA, seed=1, bugs=2, grade=grade)[0] == made[1]
    assert spoiled.make(KATA, seed=2, bugs=2, grade=grade)[0].source != made[1].source


def test_the_lines_of_a_mistake_are_those_that_differ_and_no_comment_tells_of_it(made):
    for one in made:
        lines, base = one.source.splitlines(), one.base.splitlines()

        for bug in one.bugs:
            assert bug.lines
            assert any(lines[number - 1] not in base for number in bug.lines)
        assert all("#" not in line or line in base for line in lines)


def test_comments_that_an_edit_brings_are_left_out_and_those_of_the_style_stay():
    base = "x = 1  # (B, T)\n"
    wrong = "# the wrong one\nx = 2  # (B, T)\ny = '#'  # no scale\n"

    assert spoiled._told_nothing(wrong, base) == "x = 2  # (B, T)\ny = '#'\n"


def test_what_a_grading_does_not_name_is_not_used(made, grade):
    report = grade(KATA.slug, made[1].source.encode())
    (whole,) = report.diagnosis
    for diagnosis in ([], [replace(whole, mistakes=whole.mistakes[:1])], [whole, whole]):
        assert not spoiled.is_proven(made[1], replace(report, diagnosis=diagnosis))

    with pytest.raises(UsageError, match="No attempt at sdpa with 2 mistakes was found for seed 7"):
        spoiled.make(KATA, seed=7, bugs=2, grade=lambda slug, source: replace(report, diagnosis=[]))


def test_it_survives_json(made):
    for one in made:
        assert Spoiled.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def without(one: Spoiled, *mistakes: str) -> str:
    source = one.source
    for bug in reversed(one.bugs):
        for wrong, right in reversed(list(zip(bug.wrong, bug.right, strict=True))):
            source = source.replace(wrong, right) if bug.mistake in mistakes else source
    return source


def test_grading_tells_what_is_mended_left_and_new(grade):
    one = next(
        made
        for made in (spoiled.make(KATA, seed=seed, bugs=2, grade=grade)[0] for seed in range(20))
        if without(made, *made.mistakes) == made.base and "return weights @ v" in made.base
    )
    first, second = (bug.mistake for bug in one.bugs)

    def judged(source: str) -> object:
        result = hunt.judge(one, source.encode(), grade(KATA.slug, source.encode()))
        return result and (result.mended, result.left, result.new, result.unclear, bool(result.other), result.done)

    assert judged(one.source) == ([], [first, second], [], [], False, False)
    assert judged(without(one, first)) == ([first], [second], [], [], False, False)
    assert judged(one.base) == ([first, second], [], [], [], False, True)
    new = one.base.replace("return weights @ v", "return weights @ v, weights")
    assert judged(new) == ([first, second], [], ["output.tuple"], [], False, False)
    unknown = one.source.replace(
        "def scaled_dot_product_attention(q, k, v):\n",
        "def scaled_dot_product_attention(q, k, v):\n    return q.cos().mean(-1, keepdim=True) * v[..., :1, :]\n",
    )
    assert unknown != one.source
    assert judged(unknown) == ([], [first, second], [], [], True, False)
    assert judged("import nothing_like_this\n") is None


def test_the_file_says_that_it_is_a_hunt_wherever_it_is_copied(made):
    from attn_kata import stub

    text = hunt.text(KATA, made[0]).encode()

    assert hunt.is_hunt(text)
    assert stub.header(text) == ("sdpa", None)
    assert not hunt.is_hunt(stub.render(KATA).encode())


def test_no_file_is_overwritten(made, tmp_path: Path):
    paths = [hunt.write(KATA, made[0], tmp_path / "new") for _ in range(3)]
    (tmp_path / "a_file").touch()

    assert [path.name for path in paths] == ["hunt_sdpa.py", "hunt_sdpa_2.py", "hunt_sdpa_3.py"]
    with pytest.raises(UsageError, match="No file can be written in") as wrong:
        hunt.write(KATA, made[0], tmp_path / "a_file")
    assert wrong.value.next_step == "Try --dir DIR"
