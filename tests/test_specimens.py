"""The right and wrong attempts that travel with a kata: read strictly, and edited exactly."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from attn_kata import catalog, specimens
from attn_kata.authoring import rules
from attn_kata.authoring.workbench import Workbench
from attn_kata.engine.client import Engine
from attn_kata.errors import KataFileError, UsageError
from attn_kata.specimens import Collision

PLAIN = """# style: plain
# edge fails: half_precision, large_scores
import torch


def add(a, b):
    total = a + b
    return total
"""
ROW = """
[minus]
base = "plain"
breaks = ["values"]
mistakes = []
[[minus.edit]]
old = 'a + b'
new = 'a - b'
"""
WHOLE = "# breaks: values, gradients\n# mistake: scale.embed_dim + mask.inverted\ndef add(a, b):\n    return 0\n"


@pytest.fixture
def kata(tmp_path: Path) -> Callable[..., Path]:
    """The folder of a kata with one right attempt, these rows, and one whole wrong file."""

    def write(rows: str = ROW, whole: str = WHOLE, right: str = PLAIN) -> Path:
        for path, text in (("right/plain.py", right), ("wrong.toml", rows), ("wrong/zero.py", whole)):
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text, "utf-8")
        return tmp_path

    return write


def row(name: str, old: str, new: str) -> str:
    return ROW.replace("minus", name).replace("a + b", old).replace("a - b", new)


def test_a_row_is_its_base_with_the_edits_and_without_the_comments_at_the_top(kata):
    right, minus, zero = specimens.read(kata())

    assert right.source() == PLAIN.partition("scores\n")[2]
    assert minus.source() == right.source().replace("a + b", "a - b")
    assert zero.source() == "def add(a, b):\n    return 0\n"
    assert [specimen.title for specimen in (right, minus, zero)] == ["right/plain", "wrong/minus", "wrong/zero"]
    assert right.edge_fails == {"half_precision", "large_scores"}
    assert (minus.breaks, minus.mistakes) == ({"values"}, set())
    assert (zero.breaks, zero.mistakes) == ({"values", "gradients"}, {"scale.embed_dim", "mask.inverted"})


def test_edits_are_applied_one_after_the_other(kata):
    second = "[[minus.edit]]\nold = 'a - b'\nnew = 'b - a'\n"
    minus = specimens.find(kata(ROW + second), "minus")

    assert "total = b - a\n" in minus.source()


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("a * b", "wrong.toml: 'minus.edit[1].old' does not occur in the text that it is applied to"),
        ("total", "wrong.toml: 'minus.edit[1].old' occurs 2 times in the text that it is applied to"),
    ],
)
def test_an_old_text_that_does_not_occur_exactly_once_is_named(old, said, kata):
    minus = specimens.find(kata(row("minus", old, "new")), "minus")

    with pytest.raises(KataFileError) as caught:
        minus.source()

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("base =", "from ="), "'minus.base' is missing"),
        (
            ('"plain"', '"fancy"'),
            "'minus.base' is 'fancy', which is neither the name of a file in right/ nor 'solution'",
        ),
        (('["values"]', "[]"), "'minus.breaks' must have 1 or more"),
        (("mistakes = []", ""), "'minus.mistakes' is missing"),
        (("mistakes = []", "mistakes = []\nwhy = 'x'"), "'minus.why' is an unknown key"),
        (("new =", "also = 'x'\nnew ="), "'minus.edit[1].also' is an unknown key"),
        (("'a + b'", "''"), "'minus.edit[1].old' is empty"),
        (("'a - b'", "'a + b'"), "'minus.edit[1].new' is the same as 'old'"),
        (("'a - b'", "3"), "'minus.edit[1].new' must be text, not int"),
        (("[[minus.edit]]", "[minus.edit]"), "'minus.edit' must be [[minus.edit]] tables"),
        (("[minus]", "x = 1\n[minus]"), "'x' must be a [x] table"),
        (("[minus]", '["a b"]\n[minus]'), "'a b' must be a Python name"),
        (("[minus]", "[minus]\n[minus]"), "cannot be read"),
        ((ROW, ROW + ROW), "minus"),
        ((ROW, row("zero", "a + b", "0")), "'zero' is also a file, wrong/zero.py"),
    ],
)
def test_a_row_that_is_not_as_it_should_be_is_one_sentence_with_file_and_row(change, said, kata):
    folder = kata(ROW.replace(*change))

    with pytest.raises(KataFileError) as caught:
        specimens.read(folder)

    assert "wrong.toml" in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"right": PLAIN.replace("# style: plain\n", "")}, "plain.py: there is no '# style: …' at the top"),
        ({"right": PLAIN.replace("edge fails", "edges")}, "plain.py: '# edges:' is unknown here"),
        (
            {"whole": WHOLE.replace("# mistake: scale.embed_dim + mask.inverted\n", "")},
            "zero.py: there is no '# mistake: …'",
        ),
        ({"whole": "# breaks: values\n" + WHOLE}, "zero.py: '# breaks:' is there twice"),
    ],
)
def test_a_file_whose_comments_are_not_as_they_should_be_is_named(given, said, kata):
    with pytest.raises(KataFileError) as caught:
        specimens.read(kata(**given))

    assert said in str(caught.value)


# ------------------------------------------------------------------------------------------------------- combining


def test_the_edits_of_two_rows_are_made_at_once(kata):
    folder = kata(ROW + row("returns_a", "return total", "return a"))
    both = specimens.combined([specimens.find(folder, "minus"), specimens.find(folder, "returns_a")])

    assert "total = a - b\n    return a\n" in both


@pytest.mark.parametrize(
    ("old", "new"), [("a + b", "a * b"), ("total = a + b", "total = a"), ("return total", "return a + b")]
)
def test_rows_that_change_the_same_part_collide(old, new, kata):
    folder = kata(ROW + row("other", old, new))

    with pytest.raises(Collision, match="minus and other change the same part of plain"):
        specimens.combined([specimens.find(folder, "minus"), specimens.find(folder, "other")])


def test_rows_of_different_bases_collide(kata):
    folder = kata()

    with pytest.raises(Collision, match="made from different attempts: plain and zero"):
        specimens.combined([specimens.find(folder, "minus"), specimens.find(folder, "zero")])


# --------------------------------------------------------------------------------------------------------- finding


@pytest.mark.parametrize("name", ["minus", "wrong/minus", "wrong/minus.py", " minus"])
def test_a_specimen_is_found_with_its_folder_or_without(name, kata):
    assert specimens.find(kata(), name).title == "wrong/minus"


@pytest.mark.parametrize(("name", "meant"), [("minsu", "wrong/minus"), ("right/plan", "right/plain")])
def test_a_misspelt_name_gets_the_nearest(name, meant, kata):
    with pytest.raises(UsageError, match=f"Did you mean '{meant}'"):
        specimens.find(kata(), name)


def test_a_name_of_a_right_and_of_a_wrong_one_is_asked_back(kata):
    folder = kata(row("plain", "a + b", "a - b"))

    with pytest.raises(UsageError) as caught:
        specimens.find(folder, "plain")

    assert caught.value.next_step == "Name one of them: right/plain or wrong/plain"
    assert specimens.find(folder, "wrong/plain").kind == "wrong"


# ----------------------------------------------------------------------------------------------- those of the katas


@pytest.mark.parametrize("each", catalog.katas(), ids=lambda kata: kata.slug)
def test_every_edit_applies_and_gives_python_that_no_other_specimen_is(each):
    seen: dict[str, str] = {}
    for specimen in specimens.read(each.folder):
        body = ast.dump(ast.parse(specimen.source()))
        assert body not in seen, f"{specimen.title} is {seen[body]}"
        seen[body] = specimen.title


# ------------------------------------------------------------------------------------------------------- dev check


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda folder: (folder / "notes.txt").write_text(""),
            ["the file 'notes.txt' is unknown; a kata's folder holds"],
        ),
        (lambda folder: (folder / "wrongs").mkdir(), ["the folder 'wrongs' is unknown"]),
        (
            lambda folder: (folder / "right" / "old").mkdir(),
            ["'right/old' is unknown; right/ holds Python files alone"],
        ),
        (lambda folder: (folder / "wrong" / "x.toml").write_text(""), ["'wrong/x.toml' is unknown"]),
        (
            lambda folder: (folder / "wrong.toml").write_text(
                (folder / "wrong.toml").read_text("utf-8") + row("one", "no such", "x") + row("two", "q", "x"), "utf-8"
            ),
            ["wrong.toml: 'one.edit[1].old' does not occur", "wrong.toml: 'two.edit[1].old' occurs"],
        ),
        (lambda folder: (folder / "wrong.toml").write_text("[x]\nb = 1"), ["wrong.toml: 'x.base' is missing"]),
    ],
)
def test_dev_check_names_the_file_and_the_row_before_anything_is_graded(spoil, said, tmp_path):
    sdpa = catalog.find("sdpa")
    folder = tmp_path / "sdpa"
    shutil.copytree(sdpa.folder, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "wrong").mkdir(exist_ok=True)
    spoil(folder)
    result = rules.check(replace(sdpa, folder=folder), cast(Engine, None), Workbench())

    assert result.graded == 0
    assert len(result.problems) == len(said)
    for problem, words in zip(result.problems, said, strict=True):
        assert words in problem
