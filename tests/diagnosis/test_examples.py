"""The example of every mistake: it exists, and makes that mistake and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from attn_kata import catalog, specimens
from attn_kata.diagnosis import catalogue, examples
from attn_kata.errors import KataFileError


def test_every_example_makes_just_the_mistake_that_it_is_shown_for() -> None:
    assert examples.load()
    for id, example in examples.load().items():
        specimen = example.specimen()
        assert specimen.mistakes == {id}, example
        assert specimen.breaks <= set(example.breaks), example
        assert "from_scratch" not in specimen.breaks, example
        assert examples.wrong_lines(specimen), f"{example} shows no wrong line"


def test_every_mistake_that_a_row_makes_alone_has_an_example_and_breaks_what_is_said_of_it() -> None:
    broken: dict[str, set[str]] = {}
    for kata in catalog.katas():
        for specimen in specimens.read(kata.folder):
            if len(specimen.mistakes) == 1:
                broken.setdefault(*specimen.mistakes, set()).update(specimen.breaks)

    assert list(examples.load()) == [id for id in catalogue.load() if id in broken]
    for id, example in examples.load().items():
        assert set(example.breaks) <= broken[id], f"examples.toml says too much of {id}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[scale.missing]\nexample = "scale_missing"\nbreaks = ["values"]',
            "'scale.missing.example' must be kata/name",
        ),
        ('[scale.missing]\nexample = "sdpa/scale_missing"\nbreaks = []', "'scale.missing.breaks' must have 1 or more"),
        ('[scale.missing]\nexample = "sdpa/x"\nbreaks = ["values"]\nsee = ""', "'scale.missing.see' is an unknown key"),
        ("scale = 3", "'scale' must be a [scale] table"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_and_key(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "examples.toml"
    file.write_text(text, "utf-8")
    monkeypatch.setattr(examples, "FILE", file)

    with pytest.raises(KataFileError) as caught:
        examples.load.__wrapped__()

    assert "examples.toml" in str(caught.value)
    assert said in str(caught.value)
