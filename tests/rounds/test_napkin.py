"""Numbers are judged with a tolerance, in the units that people type; every numeric question of every kata can be asked."""

from __future__ import annotations

import pytest

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.interview import content, follow_ups
from attn_kata.rounds import napkin


def question(answer: float, unit: str = "", tolerance: float = 0.02) -> napkin.Question:
    return napkin.Question(kata="sdpa", ask="?", answer=answer, unit=unit, tolerance=tolerance, working="")


@pytest.mark.parametrize(
    ("answer", "unit", "typed"),
    [
        (2**17, "bytes", "128 KiB"),
        (2**17, "bytes", "131_072"),
        (2**17, "bytes", "2^17 bytes"),
        (2**17, "bytes", "131,072 B"),
        (2**20, "", "2**20"),
        (3 * 2**20, "FLOPs", "3 * 2^20 FLOPs"),
        (1.3e9, "FLOPs", "1.3 gflops"),
        (1.3e9, "parameters", "1.3e9 parameters"),
        (1.3e9, "parameters", "1.3G"),
        (45.0, "%", "45 %"),
        (45.0, "%", "45"),
        (-2.0, "", "-2"),
    ],
)
def test_right_as_people_type_it(answer, unit, typed):
    assert napkin.judge(question(answer, unit), typed) == napkin.Answer(text=typed, right=True)


@pytest.mark.parametrize(
    ("answer", "unit", "typed", "note"),
    [
        (2**30, "bytes", "2 GiB", "Your number is 2 times the answer."),
        (2**30, "bytes", "0.5 GiB", "Your number is 1/2 of the answer."),
        (2**30, "bytes", "1 GB", "It looks as if you counted with 1,000 instead of 1,024."),
        (1e6, "bytes", "1 MiB", "It looks as if you counted with 1,024 instead of 1,000."),
        (45.0, "%", "0.45", "Your number is 1/100 of the answer."),
        (100.0, "parameters", "100 bytes", "You gave bytes, and the question asks for parameters."),
        (100.0, "", "100 %", "You gave %, and the question asks for a number without a unit."),
        (100.0, "", "97", ""),
        (100.0, "", "0", ""),
    ],
)
def test_what_is_off_is_said_where_a_factor_shows_it(answer, unit, typed, note):
    assert napkin.judge(question(answer, unit), typed) == napkin.Answer(text=typed, right=False, note=note)


@pytest.mark.parametrize("typed", ["", "  ", "many", "bytes", "1 2", "2^9999", "1e999", "nan", "9" * 100, "0x10"])
def test_what_is_no_number(typed):
    with pytest.raises(UsageError) as wrong:
        napkin.judge(question(1.0, "bytes"), typed)

    assert wrong.value.next_step


@pytest.mark.parametrize("slug", catalog.slugs())
def test_every_numeric_question_is_asked_once_with_its_working(slug):
    asked = content.of_kata(slug).follow_ups
    drawn = [napkin.of(one) for one in follow_ups.numeric(slug, asked, seed=3, count=99)]

    assert len(drawn) == sum(one.kind == "numeric" for one in asked) == len({one.ask for one in drawn})
    for one in drawn:
        assert one.working
        assert napkin.judge(one, repr(one.answer)).right
        assert napkin.judge(one, one.answer_text).right
        assert not napkin.judge(one, repr(one.answer * 1.5)).right
    assert drawn == [napkin.of(one) for one in follow_ups.numeric(slug, asked, seed=3, count=99)]
