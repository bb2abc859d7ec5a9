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
contract = "Write f."
hints = ["one", "two", "three"]
smoke = "print(f(1))"

[[entry]]
kind = "function"
name = "f"
doc = "It is f."
signature = "x: Tensor"
[[entry.step]]
todo = "Do it."

[[entry]]
kind = "class"
name = "C"
doc = "It is C."
[[entry.method]]
name = "__init__"
[[entry.method.step]]
todo = "Make it."
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
    assert [(entry.kind, entry.name, entry.returns) for entry in read.entries] == [
        ("function", "f", "Tensor"),
        ("class", "C", ""),
    ]
    assert read.entries[1].methods[0].returns == "None"


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
        ('contract = "Write f."', f'contract = "{"x" * 101}"', "'contract' has a line of more than 100 characters"),
        ('doc = "It is f."', 'doc = \'a """ b\'', "'entry[1].doc' goes into a docstring"),
        ('kind = "function"', 'kind = "func"', "'entry[1].kind' must be 'function' or 'class'"),
        ('name = "f"', 'name = "f g"', "'entry[1].name' must be a Python name, not 'f g'"),
        ('todo = "Do it."', 'todo = "Do it."\nshapes = "x"', "'entry[1].step[1].shapes' is an unknown key"),
        ('todo = "Do it."', 'todo = ""', "'entry[1].step[1].todo' is empty"),
        ('name = "__init__"', 'name = "forward"', "'entry[2].method' must begin with '__init__'"),
        ('doc = "It is C."', 'doc = "It is C."\nsignature = "x"', "'entry[2].signature' is an unknown key"),
        ("level = 1", "level = ", "cannot be read"),
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


def test_every_kata_has_its_prompt():
    for kata in catalog.katas():
        assert kata.prompt.read_text("utf-8").startswith("# ")
