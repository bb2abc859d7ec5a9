"""The examples of mistakes: what `explain` shows of them, without a look at the specimens."""

from __future__ import annotations

from pathlib import Path

import pytest

from attn_kata import catalog, specimens
from attn_kata.diagnosis import catalogue, examples
from attn_kata.errors import KataFileError


def test_every_mistake_that_a_row_makes_alone_has_an_example_in_the_catalogues_order() -> None:
    alone = {
        id
        for kata in catalog.katas()
        for specimen in specimens.read(kata.folder)
        for id in specimen.mistakes
        if len(specimen.mistakes) == 1
    }

    assert list(examples.load()) == [id for id in catalogue.load() if id in alone]


def test_the_example_is_that_of_the_kata_or_of_the_easiest_one() -> None:
    of_mha, of_any = examples.shown("scale.missing", "mha"), examples.shown("scale.missing")
    levels = {kata.slug: kata.level for kata in catalog.katas()}

    assert of_mha is not None
    assert of_mha.kata == "mha"
    assert of_any is not None
    assert levels[of_any.kata] == min(levels[one.kata] for one in examples.load()["scale.missing"] if one.code)
    assert examples.shown("rope.half_split", "softmax") == examples.shown("rope.half_split")
    assert examples.shown("no.such") is None


def test_no_specimen_is_read_for_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    def scanned(folder: Path) -> None:
        raise AssertionError(f"{folder} was scanned")

    for name in ("read", "row"):
        monkeypatch.setattr(specimens, name, scanned)
    examples.load.cache_clear()

    assert examples.shown("scale.missing", "mha") is not None
    assert "scale.missing" in examples.breaking("values", "mha")
    assert "mha" in examples.breaks("scale.missing")["values"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["scale.missing"]\nbreaks = []', "'scale.missing.breaks' must have 1 or more"),
        ('["scale.missing"]\nbreaks = ["values"]\nrow = "scale_missing"', "'scale.missing.code' is missing"),
        ('["scale.missing"]\nbreaks = ["values"]\nsee = ""', "'scale.missing.see' is an unknown key"),
        ("scale = 3", "'scale' must be a table"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_and_key(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "examples.toml").write_text(text, "utf-8")

    with pytest.raises(KataFileError) as caught:
        examples.of_kata(tmp_path)

    assert "examples.toml" in str(caught.value)
    assert said in str(caught.value)


def test_a_kata_whose_examples_are_not_written_yet_has_none(tmp_path: Path) -> None:
    assert examples.of_kata(tmp_path) == {}
