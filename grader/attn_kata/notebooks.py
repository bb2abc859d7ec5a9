"""The notebook that `attn-kata start --notebook` writes, and which of its cells are for which kata.

For each kata it has the contract, a cell with the stub, and one that grades.

Format 4.5: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from attn_kata import catalog, contract, stub
from attn_kata.catalog import Kata
from attn_kata.sources import Source

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


def of_kata(source: Source, kata: Kata) -> Source:
    """The source for this kata: without the cells for other katas that ask for the same names, where one is for this kata.

    `MultiHeadAttention` is asked for by mha and by qkv_attention; in a notebook with both, the last one would be graded.
    """
    lines = source.code.split(b"\n")
    cells = [(cell, written_for(b"\n".join(lines[cell.first - 1 : cell.last]))) for cell in source.cells]
    if kata.slug not in (slug for _, slug in cells):
        return source
    notes = []
    for cell, slug in cells:
        if slug != kata.slug and asks_for(slug, kata.entries):
            lines[cell.first - 1 : cell.last] = [b""] * (cell.last - cell.first + 1)
            notes.append(f"Left out, because it is for {slug}: {cell.name}.")
    return replace(source, code=b"\n".join(lines), notes=(*source.notes, *notes))


def written_for(cell: bytes) -> str | None:
    """The kata that a cell is for, by its stub's header or its magic. None where it does not say so."""
    magic = re.match(rb"(?:# )?%%kata[ \t]+([\w-]+)", cell)
    return magic[1].decode() if magic else stub.header(cell)[0]


def asks_for(slug: str | None, names: Sequence[str]) -> bool:
    """Whether there is such a kata, and it asks for one of these names."""
    return slug in catalog.slugs() and not set(names).isdisjoint(catalog.find(slug).entries)


def _text(name: str, text: str) -> dict[str, object]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(text)}


def _code(name: str, text: str) -> dict[str, object]:
    made: dict[str, object] = {"cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": []}
    return {**made, "source": _lines(text)}


def _lines(text: str) -> list[str]:
    return text.rstrip("\n").splitlines(keepends=True)
