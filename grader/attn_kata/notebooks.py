"""The notebook that `attn-kata start --notebook` writes: for each kata the contract, a cell with the stub, and one that grades.

Format 4.5: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from attn_kata import contract, stub
from attn_kata.catalog import Kata

NAME = "katas.ipynb"

_FIRST = """\
# Katas

Run the next cell once. Then, in each section: read the contract, write the code in the cell below it, and run that cell
and the one that begins with `%kata`. The report comes below. Hint: `%kata_hint`. A mistake explained: `%kata_explain ID`.
The reference, once you passed: `%kata_solution`.
"""


def render(katas: Sequence[Kata], level: stub.Level = "standard") -> str:
    """The notebook as text, with one section for each kata. Raises KataFileError."""
    cells = [_text("first", _FIRST), _code("load", "%load_ext attn_kata")]
    for kata in katas:
        asked = contract.load(kata.prompt)
        minutes = f"Level {kata.level}, about {kata.minutes} minutes."
        cells += [
            _text(f"{kata.slug}-contract", f"## {kata.title}\n\n{minutes}\n\n{asked.text}\n"),
            _code(f"{kata.slug}-attempt", f"# attn-kata: {kata.slug} ({level})\n{stub.code(kata, level)}"),
            _code(f"{kata.slug}-grade", f"%kata {kata.slug}"),
        ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    body = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _text(name: str, text: str) -> dict[str, object]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(text)}


def _code(name: str, text: str) -> dict[str, object]:
    made: dict[str, object] = {"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": []}
    return {**made, "source": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").splitlines(keepends=True)
