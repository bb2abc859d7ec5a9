"""`attn-kata dev check` and what a candidate is given: contract, stub, interview."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.authoring import handout
from attn_kata.engine.client import Engine
from attn_kata.interview import content

Change = Callable[[str, str, str], catalog.Kata]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the folder of sdpa, to be written into."""
    own = shutil.ignore_patterns("right", "wrong", "__pycache__")
    shutil.copytree(catalog.find("sdpa").folder, tmp_path / "sdpa", ignore=own)
    return tmp_path / "sdpa"


@pytest.fixture
def change(folder: Path) -> Change:
    """Changes a file of the copy, and loads it."""

    def changed(name: str, old: str, new: str) -> catalog.Kata:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), "utf-8")
        return catalog.load(folder)

    return changed


@pytest.mark.parametrize("kata", catalog.katas(), ids=lambda kata: kata.slug)
def test_the_handout_of_every_kata_is_right(kata: catalog.Kata) -> None:
    assert handout.problems(kata) == []


NAME = "scaled_dot_product_attention"


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("prompt.md", "# Scaled", "Scaled", "prompt.md, line 1: must be the title"),
        (
            "prompt.md",
            "# Scaled dot",
            "# Dot",
            "prompt.md, line 1: the title is 'Dot-product attention', and kata.toml",
        ),
        ("prompt.md", "<!-- /silent -->", "<!-- / silent -->", ": '<!-- / silent -->' is no mark"),
        (
            "prompt.md",
            "`scaled_dot_product_attention(q",
            "`attention(q",
            "does not say 'scaled_dot_product_attention('",
        ),
        ("prompt.md", "which leading", "what leading", "'which leading dimensions there are', which prompt.md does"),
        (
            "prompt.md",
            "The result is",
            "No, the function is deterministic. It is",
            "the answer to 'Should there be dropout",
        ),
        (
            "interview.toml",
            'settles = "which',
            'settles = "what',
            "'what leading dimensions there are', which prompt.md does",
        ),
        ("interview.toml", f"out = {NAME}(", "out = attend(", "uses 'attend', which is no entry of this kata"),
        ("interview.toml", f"out = {NAME}(q, k, v)", "out = q", "the worked example calls none of the entries"),
        ("stub.py.j2", "{% endblock %}", "{% endblok %}", "stub.py.j2, line 31: Encountered unknown tag 'endblok'"),
        ("stub.py.j2", "{{ todo(", "{{ to_do(", "stub.py.j2, line 10: UndefinedError: 'to_do' is undefined"),
        (
            "stub.py.j2",
            f"def {NAME}(",
            "def attend(",
            f"stub.py.j2 defines attend, and the entries of kata.toml are {NAME}",
        ),
        ("stub.py.j2", f"def {NAME}(", "def (", "stub.py.j2 does not make Python: "),
        (
            "stub.py.j2",
            "    raise Not",
            f"    # {'x' * 120}\n    raise Not",
            "makes a line of more than 120 characters",
        ),
    ],
)
def test_a_fault_is_said_in_one_sentence_with_its_file(
    change: Change, name: str, old: str, new: str, said: str
) -> None:
    problems = handout.problems(change(name, old, new))

    assert len(problems) == 1
    assert said in problems[0]
    assert "\n" not in problems[0]


def test_a_stub_without_steps_is_said(folder: Path) -> None:
    text = (folder / "stub.py.j2").read_text("utf-8")
    before, rest = text.split("    {{", 1)
    (folder / "stub.py.j2").write_text(before + "    raise" + rest.split("    raise", 1)[1], "utf-8")

    assert handout.problems(catalog.load(folder)) == ['stub.py.j2 has no step: {{ todo("...") }}']


@pytest.mark.parametrize("name", ["prompt.md", "stub.py.j2", "interview.toml"])
def test_a_missing_file_is_said(folder: Path, name: str) -> None:
    (folder / name).unlink()

    problems = handout.problems(catalog.load(folder))
    assert len(problems) == 1
    assert name in problems[0]


def test_an_interview_that_was_copied_from_another_kata_is_found(folder: Path) -> None:
    """Its questions settle what this kata does not leave open; even where they agree, its example calls other names."""
    shutil.copy(catalog.find("softmax").folder / "interview.toml", folder)
    kata = catalog.load(folder)
    by_points = handout.problems(kata)

    theirs = content.of_kata("softmax").silent
    text = (folder / "prompt.md").read_text("utf-8")
    for mine, other in zip(content.of_kata("sdpa").silent, theirs, strict=True):
        text = text.replace(f"silent: {mine} ", f"silent: {other} ")
    (folder / "prompt.md").write_text(text, "utf-8")
    by_names = handout.problems(kata)

    assert len(by_points) == 1
    assert f"settles '{theirs[0]}', which prompt.md does not mark as silent" in by_points[0]
    assert by_names == ["interview.toml: the worked example uses 'softmax', which is no entry of this kata"]


def test_the_shape_check_and_the_worked_example_run_on_the_reference(
    change: Change, folder: Path, monkeypatch: pytest.MonkeyPatch, shared_engine: Engine
) -> None:
    right = list(handout.problems_when_run(catalog.load(folder), shared_engine))
    change("stub.py.j2", "out = scaled", "out = missing")
    kata = change("interview.toml", "6.6976", "6.7976")
    monkeypatch.setattr(content, "of_kata", lambda slug: content.load(folder / "interview.toml"))
    raises, example = handout.problems_when_run(kata, shared_engine)
    text = (folder / "stub.py.j2").read_text("utf-8").split("{% block shapes %}")[0]
    (folder / "stub.py.j2").write_text(text + "{% block shapes %}\nx = 1\n{% endblock %}\n", "utf-8")
    silent, _ = handout.problems_when_run(kata, shared_engine)

    assert right == []
    assert raises.startswith("stub.py.j2: the block shapes does not run on the reference: ")
    assert "missing" in raises
    assert example.startswith("interview.toml: the worked example is not what the reference gives: The example: out is")
    assert silent == "stub.py.j2: the block shapes prints nothing"
