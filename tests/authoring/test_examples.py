"""A kata's examples.toml: made of its wrong attempts, and compared with them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.authoring import examples
from attn_kata.catalog import Kata
from attn_kata.diagnosis import examples as kept


@pytest.fixture
def kata(tmp_path: Path) -> Kata:
    """A copy of softmax."""
    original = catalog.find("softmax")
    shutil.copytree(original.folder, tmp_path / "softmax")
    return replace(original, folder=tmp_path / "softmax")


@pytest.mark.parametrize("slug", catalog.slugs())
def test_the_examples_of_every_kata_are_those_of_its_wrong_attempts(slug: str) -> None:
    assert examples.problems(catalog.find(slug)) == []


def test_what_is_written_is_read_as_it_was_made(kata: Kata) -> None:
    path = kept.file(kata.folder)
    before = path.read_bytes()
    path.unlink()

    assert examples.write(kata) == path
    assert path.read_bytes() == before
    assert kept.of_kata(kata.folder) == examples.of_specimens(kata)


def test_an_example_makes_its_one_mistake_and_calls_nothing_forbidden(kata: Kata) -> None:
    wrong = kata.folder / "wrong.toml"
    row = '[alone_but_ready_made]\nbase = "plain"\nbreaks = ["from_scratch"]\nmistakes = ["softmax.negated"]\n'
    edit = '[[alone_but_ready_made.edit]]\nold = "import torch"\nnew = "import torch  # twice"\n'
    wrong.write_text(f"{row}{edit}\n{wrong.read_text('utf-8')}", "utf-8")

    example = examples.of_specimens(kata)["softmax.negated"]
    assert example.row not in (None, "alone_but_ready_made")
    assert "from_scratch" in example.breaks


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.unlink(), "there is no examples.toml; write it"),
        (lambda path: path.write_text('["softmax.twice"]\n'), "'softmax.twice.breaks' is missing. Write it anew"),
        (lambda path: path.write_text(""), "examples.toml does not say what wrong.toml shows of"),
    ],
)
def test_examples_that_are_not_those_of_the_wrong_attempts_are_told_with_the_next_command(
    kata: Kata, change: object, said: str
) -> None:
    change(kept.file(kata.folder))  # type: ignore[operator]

    (problem,) = examples.problems(kata)
    assert said in problem
    assert problem.endswith("attn-kata dev examples softmax")
