"""What is wrong in an author's mistakes.py is one sentence, before anything is graded."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from attn_kata import catalog, specimens
from attn_kata.authoring import pipelines
from attn_kata.catalog import Kata


@pytest.fixture
def sdpa(tmp_path: Path) -> Kata:
    """A copy of the kata that may be spoilt."""
    kata = catalog.find("sdpa")
    folder = tmp_path / "sdpa"
    shutil.copytree(kata.folder, folder)
    return replace(kata, folder=folder)


def told(kata: Kata) -> list[str]:
    return list(pipelines.problems(kata, specimens.read(kata.folder)))


def spoil(kata: Kata, file: str, old: str, new: str) -> None:
    path = kata.folder / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_a_kata_as_it_should_be_has_no_problem(sdpa: Kata) -> None:
    assert told(sdpa) == []


def test_a_misspelt_stage_is_one_sentence_with_the_line(sdpa: Kata) -> None:
    spoil(sdpa, "mistakes.py", '"scale.missing", {"scale"', '"scale.missing", {"scal"')
    (said,) = told(sdpa)

    assert said.startswith("mistakes.py, line ")
    assert "scale.missing replaces ['scal'], which scaled_dot_product_attention does not have" in said


def test_a_misspelt_name_of_the_library_is_one_sentence_with_the_line(sdpa: Kata) -> None:
    spoil(sdpa, "mistakes.py", "s.scale_by_head_dim", "s.scale_by_heed_dim")
    (said,) = told(sdpa)

    assert said.startswith("mistakes.py, line ")
    assert "scale_by_heed_dim" in said


def test_an_id_without_words_is_named_once_where_it_stands(sdpa: Kata) -> None:
    spoil(sdpa, "mistakes.py", '"scale.no_sqrt"', '"scale.no_root"')
    spoil(sdpa, "wrong.toml", '"scale.inverted"', '"scale.invertid"')
    said = told(sdpa)

    assert "mistakes.py names 'scale.no_root', which has no words in mistakes.toml or in the catalogue" in said
    assert [one for one in said if "'scale.invertid'" in one]
    assert all("wrong/" in one or "mistakes.py" in one for one in said)


def test_a_pipeline_that_is_not_the_reference_is_told_with_the_probe(sdpa: Kata) -> None:
    spoil(sdpa, "mistakes.py", '"scale": s.scale_by_head_dim', '"scale": s.scale_by_value_dim')

    assert told(sdpa) == [
        "mistakes.py: without a mistake, 'scaled_dot_product_attention' is not the reference on probe 1"
    ]


def test_a_missing_file_is_told(sdpa: Kata) -> None:
    (sdpa.folder / "mistakes.py").unlink()

    assert told(sdpa) == ["there is no mistakes.py"]
