"""Notebooks on the command line, in a real process."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import nbformat
import pytest
from tests.notebook.conftest import WRONG, notebook

from attn_kata import catalog, notebooks, sources
from attn_kata.watch.files import Missing, Saved, look


@pytest.fixture
def command(surroundings: Path, ready: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """What `attn-kata` says to these arguments and these lines."""
    return lambda *arguments, lines="": ready.run(arguments, cwd=Path.cwd(), env=dict(os.environ), lines=lines)


def test_a_notebook_from_standard_input_is_graded_with_cell_and_line(command: Any) -> None:
    before, code = WRONG.split("def ", 1)
    cells = [f"%matplotlib inline\n{before}", f"def {code}", "await something()", "!ls\nprint(nothing)"]
    typed = nbformat.writes(notebook(*cells))
    done = command("grade", "-", "--json", lines=typed)
    report = json.loads(done.stdout)
    jsonschema.validate(
        report, json.loads(resources.files("attn_kata.report").joinpath("report.schema.json").read_text())
    )
    mistake = report["diagnosis"][0]["mistakes"][0]
    at = [line for line, text in enumerate(f"def {code}".split("\n"), 1) if "shape[-1]" in text]

    assert done.returncode == 1
    assert "'-' defines scaled_dot_product_attention, so it is graded as sdpa." in done.stderr
    assert mistake["id"] == "scale.no_sqrt"
    assert mistake["place"] == f"cell 2, line {at[0]}"
    assert report["cells"][1]["name"] == "cell 2"
    assert report["stopped_by"] == "cell 4, line 2, NameError: name 'nothing' is not defined"
    assert any(
        note.startswith("Left out, because only a notebook can await: cell 3, line 1.") for note in report["notes"]
    )


def test_a_notebook_is_started_once_and_never_reset(command: Any) -> None:
    started = command("start", "--notebook", "sdpa", "mha", "sdpa", "--level", "guided", "--dir", "here")
    file = Path("here/katas.ipynb")
    written = file.read_text("utf-8")
    again = command("start", "--notebook", "mha", "--dir", "here")
    reset = command("reset", "mha")
    several = command("start", "sdpa", "mha")
    cells = nbformat.reads(written, as_version=4).cells

    nbformat.validate(nbformat.reads(written, as_version=4))
    assert started.returncode == 0
    assert [cell.source.split("\n")[0] for cell in cells] == [
        "# Katas",
        "%load_ext attn_kata",
        "## Scaled dot-product attention",
        "# attn-kata: sdpa (guided)",
        "%kata sdpa",
        "## Multi-head self-attention",
        "# attn-kata: mha (guided)",
        "%kata mha",
    ]
    assert "TODO 1" in cells[3].source
    assert (again.returncode, reset.returncode, several.returncode) == (2, 2, 2)
    assert "exists already and was not changed" in again.stderr
    assert "%kata_start mha" in reset.stderr
    assert "attn-kata start --notebook sdpa mha" in several.stderr
    assert file.read_text("utf-8") == written


@pytest.mark.parametrize("slug", ["mha", "qkv_attention"])
def test_of_two_katas_that_ask_for_the_same_name_each_has_its_own_cell(slug: str) -> None:
    katas = [catalog.find("mha"), catalog.find("sdpa"), catalog.find("qkv_attention")]
    written = notebooks.render(katas).encode()
    again = nbformat.writes(notebook(*(f"%%kata {kata.slug}\n{kata.solution.read_text()}" for kata in katas))).encode()

    for whole in (sources.of_notebook(written, "katas.ipynb"), sources.of_notebook(again, "again.ipynb")):
        source = notebooks.of_kata(whole, catalog.find(slug))
        number = {cell.name: cell.first for cell in source.cells}
        defined = [line for line in source.code.decode().split("\n") if line.startswith(("class ", "def "))]

        assert len(source.code.split(b"\n")) == len(whole.code.split(b"\n"))
        assert number == {cell.name: cell.first for cell in whole.cells}
        assert sorted(line.split("(")[0] for line in defined) == [
            "class MultiHeadAttention",
            "def scaled_dot_product_attention",
        ]
        assert len(source.notes) == 1
        assert source.notes[0].startswith(
            f"Left out, because it is for {'mha' if slug != 'mha' else 'qkv_attention'}: cell "
        )
    assert notebooks.of_kata(whole, catalog.find("gqa")) is whole


def test_watch_sees_the_code_of_a_notebook_and_not_its_outputs(surroundings: Path) -> None:
    file = Path("sdpa.ipynb")
    made = notebook("x = 1")
    nbformat.write(made, file)
    first = look(file)
    made.cells[0].outputs = [nbformat.v4.new_output("stream", text="1")]
    nbformat.write(made, file)

    assert isinstance(first, Saved)
    assert look(file) == first
    file.write_text("{")
    assert isinstance(look(file), Missing)
