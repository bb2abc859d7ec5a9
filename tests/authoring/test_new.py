"""A new kata: its files, the TODOs that are left in it, and names that cannot be."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from attn_kata import catalog, contract, specimens, stub, templates
from attn_kata.authoring import new, rules
from attn_kata.errors import UsageError
from attn_kata.interview import content


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Katas and solutions of a clone, still empty."""
    for name in ("katas", "solutions"):
        (tmp_path / name).mkdir()
    for module in (new, catalog, rules):
        monkeypatch.setattr(module, "katas_folder", lambda: tmp_path / "katas", raising=False)
        monkeypatch.setattr(module, "solutions_folder", lambda: tmp_path / "solutions", raising=False)
    templates._of_python.cache_clear()
    return tmp_path


def test_every_file_is_written_and_can_be_read(clone: Path) -> None:
    written = new.write("relu-attention")
    folder = clone / "katas" / "relu_attention"
    kata = catalog.load(folder)

    assert {path.name for path in written} == {path.name for path in folder.rglob("*.*")} | {"relu_attention.py"}
    assert kata.title == "Relu attention"
    assert contract.load(kata.prompt).title == kata.title
    assert content.load(folder / "interview.toml").questions
    assert specimens.read(folder)[0].name == "plain"
    for level in stub.LEVELS:
        names = [node.name for node in ast.parse(stub.render(kata, level)).body if isinstance(node, ast.FunctionDef)]
        assert names == ["relu_attention"]
    for path in written:
        if path.suffix == ".py":
            ast.parse(path.read_text())
    assert list(rules._unknown(kata)) == []


def test_every_todo_that_is_left_is_told_with_its_file_and_line(clone: Path) -> None:
    written = new.write("relu_attention")
    kata = catalog.load(clone / "katas" / "relu_attention")
    told = list(new.todos(kata))

    assert len(told) == len(written)
    assert "kata.toml, line 4: a TODO is left, and 3 more" in told

    (kata.folder / "kata.toml").write_text((kata.folder / "kata.toml").read_text().replace("TODO", "done"))
    assert len(list(new.todos(kata))) == len(written) - 1


def test_a_name_that_is_taken_or_cannot_be_a_slug_is_refused_and_nothing_is_written(clone: Path) -> None:
    new.write("relu_attention")
    before = sorted(clone.rglob("*"))

    with pytest.raises(UsageError, match="relu_attention' is there already"):
        new.write("relu_attention")
    with pytest.raises(UsageError, match="'2relu!' cannot be a slug"):
        new.write("2relu!")
    assert sorted(clone.rglob("*")) == before


def test_no_kata_that_is_here_has_a_todo_left() -> None:
    assert [told for kata in catalog.katas() for told in new.todos(kata)] == []
