"""The words for every mistake: complete, strict, and nothing that gives the fix away."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from attn_kata import catalog, specimens
from attn_kata.diagnosis import catalogue, own_exceptions, raising, refinement
from attn_kata.errors import KataFileError
from attn_kata.resources import katas_folder

ENTRY = """
[scale.embed_dim]
title = "A title"
explanation = ["You divided by √{E}; the contract divides by √{D}.", "You divided by another root."]
question = "Over how many numbers?"
why = "It is too even."
see = "Print it."
seen = []
"""


def test_every_entry_is_complete_and_has_a_sentence_for_each_part() -> None:
    for entry in catalogue.load().values():
        assert re.fullmatch(r"[a-z]+\.[a-zA-Z0-9_]+", entry.id)
        assert len(entry.title) <= 60
        assert not entry.title.endswith(".")
        for text in (*entry.explanations, entry.why, entry.see):
            assert text.endswith((".", "…")), (entry.id, text)
        assert entry.question.endswith("?"), entry.id


def test_the_questions_hold_no_code_to_paste() -> None:
    for entry in catalogue.load().values():
        assert not re.search(r"@|\*\*|dim=|(view|reshape|transpose|masked_fill|softmax|sqrt)\(", entry.question), (
            entry.id
        )


def test_every_sighting_is_a_public_thread() -> None:
    for entry in catalogue.load().values():
        for sighting in entry.seen:
            assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", sighting.url), sighting.url


def test_no_sighting_is_listed_twice_for_one_mistake() -> None:
    for entry in catalogue.load().values():
        urls = [sighting.url for sighting in entry.seen]
        assert len(urls) == len(set(urls)), entry.id


def test_every_mistake_that_katas_and_diagnosis_name_has_words() -> None:
    families = "|".join(sorted({entry.family for entry in catalogue.load().values()}))
    sources = [*katas_folder().glob("*/mistakes.py"), *Path(catalogue.__file__).parent.glob("*.py")]
    named = {
        id
        for source in sources
        for id in re.findall(rf'(?:variants|breaks|Symptom)\((?:id=)?"((?:{families})\.\w+)"', source.read_text())
    }
    named.update(own_exceptions.IDS, raising.IDS)
    named.update(id for exact in refinement.REFINED.values() for id, _ in exact)
    for kata in catalog.katas():
        named.update(*(specimen.mistakes for specimen in specimens.read(kata.folder)))

    assert named
    assert named <= set(catalogue.load())


def test_an_explanation_has_the_numbers_of_the_case() -> None:
    said = catalogue.describe("scale.embed_dim", {"E": 12, "D": 4, "H": 3})

    assert said == "You divided by √12 = √embed_dim; the contract divides by √4 = √head_dim."


def test_where_a_size_is_not_known_another_wording_is_taken() -> None:
    assert "√5" in catalogue.describe("scale.embed_dim", {"D": 5, "Din": 9})
    assert not re.search(r"\d", catalogue.describe("scale.embed_dim", {}))


def test_two_equal_sizes_would_explain_nothing() -> None:
    assert "√6 = √embed_dim" not in catalogue.describe("scale.embed_dim", {"E": 6, "D": 6})


def test_every_explanation_can_be_filled_in_and_does_without_sizes() -> None:
    sizes = {name: place for place, name in enumerate(sorted(catalogue.SIZES), 2)}
    for id in catalogue.load():
        for given in (sizes, {}):
            said = catalogue.describe(id, given)
            assert "{" not in said


def test_an_unknown_mistake_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        catalogue.describe("no.such", {})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('title = "A title"', ""), "'scale.embed_dim.title' is missing"),
        (('title = "A title"', 'title = ""'), "'scale.embed_dim.title' is empty"),
        (("seen = []", "seen = []\nlink = 'x'"), "'scale.embed_dim.link' is an unknown key"),
        (("seen = []", ""), "'scale.embed_dim.seen' is missing"),
        (("seen = []", "seen = 3"), "'scale.embed_dim.seen' must be"),
        (("seen = []", 'seen = [{ url = "http://x" , what = "y" }]'), "must begin with https://"),
        (("seen = []", 'seen = [{ url = "https://x" }]'), "'scale.embed_dim.seen[1].what' is missing"),
        (("{E}", "{width}"), "names the unknown size '{width}'"),
        (("{E}", "{"), "has a wrong placeholder"),
        (("another root", "√{D}"), "must end with a wording that names no sizes"),
        (("[scale.embed_dim]", "[scale]"), "must be a table"),
        (("[scale.embed_dim]", "[scale.embed_dim"), "cannot be read"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_and_key(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    file = tmp_path / "catalogue.toml"
    file.write_text(ENTRY.replace(*change), encoding="utf-8")

    with pytest.raises(KataFileError) as caught:
        catalogue.of_file(file)

    assert "catalogue.toml" in str(caught.value)
    assert said in str(caught.value)


def test_a_kata_brings_words_for_mistakes_that_only_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = """
        [relu.unscaled]
        title = "Weights that are not divided by the number of keys"
        explanation = ["You did not divide the weights by the number of keys."]
        question = "By what does the contract divide the weights?"
        why = "The output grows with the number of keys."
        see = "Try more keys."
        seen = []
    """
    (tmp_path / "relu_attention").mkdir()
    file = tmp_path / "relu_attention" / "mistakes.toml"
    file.write_text(textwrap.dedent(words), "utf-8")
    monkeypatch.setattr(catalogue, "katas_folder", lambda: tmp_path)

    assert catalogue.describe("relu.unscaled", {}) == "You did not divide the weights by the number of keys."

    file.write_text(textwrap.dedent(words).replace("relu.unscaled", "scale.missing"), "utf-8")
    catalogue.of_file.cache_clear()
    with pytest.raises(
        KataFileError, match=r"relu_attention/mistakes.toml: 'scale.missing' is in the catalogue already"
    ):
        catalogue.load()
