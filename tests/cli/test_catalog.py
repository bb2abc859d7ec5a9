"""`kata.toml` is read strictly, and the data are found."""

from __future__ import annotations

import pytest

from attn_kata import catalog, resources
from attn_kata.errors import KataFileError, UsageError

GOOD = """
title = "A kata"
level = 1
minutes = 10
summary = "one line"
entries = ["f", "C"]
hints = ["one", "two", "three"]
"""


@pytest.fixture
def kata(tmp_path):
    """Loads a kata.toml with this text."""

    def load(text: str, slug: str = "some_kata") -> catalog.Kata:
        folder = tmp_path / slug
        folder.mkdir(exist_ok=True)
        (folder / "kata.toml").write_text(text, encoding="utf-8")
        return catalog.load(folder)

    return load


def test_a_good_one_is_read(kata):
    read = kata(GOOD)

    assert (read.slug, read.level, read.hints) == ("some_kata", 1, ("one", "two", "three"))
    assert read.entries == ("f", "C")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "A kata"\n', "", "'title' is missing"),
        ("level = 1", 'level = "1"', "'level' must be a whole number of 1 or more"),
        ("level = 1", "level = true", "'level' must be a whole number"),
        ("minutes = 10", "minutes = 0", "'minutes' must be a whole number of 1 or more"),
        ("minutes = 10", "minutes = 10\nminute = 1", "'minute' is an unknown key"),
        ('["one", "two", "three"]', '["one", "two"]', "'hints' must have 3 or more, not 2"),
        ('["one", "two", "three"]', '["one", "two", ""]', "'hints' must be a list of texts"),
        ('summary = "one line"', f'summary = "{"x" * 61}"', "'summary' must be one line of at most 60 characters"),
        ('title = "A kata"', 'title = "A \\\\ kata"', "'title' goes into a docstring"),
        ('entries = ["f", "C"]', "entries = []", "'entries' must have 1 or more, not 0"),
        ('entries = ["f", "C"]', 'entries = "f"', "'entries' must be a list of texts"),
        ('["f", "C"]', '["f g"]', "'entries' must be Python names, not 'f g'"),
        ('["f", "C"]', '["f", "f"]', "'entries' has 'f' more than once"),
        ("level = 1", "level = ", "cannot be read"),
        ('"three"]', '"three"]\n[hint_for]\nscale = 4', "must be the number of a hint: there are 3, not 4"),
        ('"three"]', '"three"]\n[hint_for]\nscale = "1"', "'hint_for.scale' must be a whole number"),
    ],
)
def test_every_error_names_the_file_and_the_key(kata, old, new, said):
    assert old in GOOD

    with pytest.raises(KataFileError) as raised:
        kata(GOOD.replace(old, new, 1))
    assert "kata.toml" in raised.value.what
    assert said in raised.value.what


def test_a_folder_that_is_no_slug_is_an_error(kata):
    with pytest.raises(KataFileError, match="snake_case"):
        kata(GOOD, slug="Some-Kata")


def test_names_take_hyphens_and_any_case():
    assert catalog.find("SDPA").slug == "sdpa"
    assert catalog.normal("Cross-Attention") == "cross_attention"


def test_a_name_far_from_every_kata_gets_no_guess():
    with pytest.raises(UsageError) as raised:
        catalog.find("zzzzzz")
    assert "Did you mean" not in raised.value.what


def test_the_data_lie_beside_the_package_or_at_the_root():
    for folder in (resources.katas_folder(), resources.solutions_folder(), resources.templates_folder()):
        assert folder.is_dir()


def test_whoever_passed_a_kata_is_not_sent_back_to_what_it_builds_on():
    every = catalog.katas()
    below = {"sdpa", "self_attention", "split_heads", "attention_dropout", "mha"}

    assert catalog.next_up(every, []).slug == "sdpa"
    assert catalog.next_up(every, ["mha"]).level >= catalog.find("mha").level
    passed = ["mha"]
    while len(passed) + len(below) - 1 < len(every):
        following = catalog.next_up(every, passed)
        assert following.slug not in {*below, *passed}
        passed.append(following.slug)
    assert catalog.next_up(every, passed).slug in below  # what was left out, when nothing else is left
    assert catalog.next_up(every, [kata.slug for kata in every]) is None


def test_a_kata_comes_after_those_that_it_builds_on():
    order = [kata.slug for kata in catalog.katas()]

    for kata in catalog.katas():
        assert all(order.index(basis) < order.index(kata.slug) for basis in kata.after), kata.slug


@pytest.mark.parametrize("after", ["no_such_kata", "some_kata"])
def test_a_kata_builds_on_other_katas_alone(kata, after):
    with pytest.raises(KataFileError, match=f"'after' names '{after}'"):
        kata(f'{GOOD}after = ["{after}"]')
