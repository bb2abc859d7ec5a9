"""What the files of a kata can name is listed, each with a sentence."""

from __future__ import annotations

import pytest

from attn_kata.authoring import library
from attn_kata.diagnosis import catalogue, stages
from attn_kata.interview import formulas


@pytest.mark.parametrize("part", library.PARTS)
def test_every_name_has_a_sentence(part: str) -> None:
    listed = list(library.PARTS[part]())

    assert len(listed) > 10
    assert [name for name, said in listed if not said] == []


def test_the_names_are_those_that_a_kata_uses() -> None:
    assert {"softmax_over_keys", "scale_by_head_dim", "nothing", "mix"} <= {name for name, _ in library.stages()}
    assert all(hasattr(stages, name) for name, _ in library.stages())
    assert [id for id, _ in library.mistakes()] == list(catalogue.load())
    assert {name.partition("(")[0] for name, _ in library.formulas()} == set(formulas.FORMULAS)
