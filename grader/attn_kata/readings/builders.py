"""Functions that build a causal mask, by other names: of one length or of two, True keeps or hides, or 0 and -inf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata.readings import masks, vocabulary
from attn_kata.readings.reading import Reading
from attn_kata.readings.structure import Definition, Structure

_NAMED = re.compile(r"mask|causal|triang|future|subsequent|look_?ahead|attend", re.IGNORECASE)
_MAKES = re.compile(r"\btri[lu]\b|arange|range\(")
_LENGTH = re.compile(
    r"^(?:n|m|t|s|l|tq|tk|q|k|sz|size|len|dim|seq|length|steps|tokens|context|block_size|长度)$"
    r"|len|size|length|num_|^n_|steps|queries|keys|seq|sz$"
)
_LOWEST = re.compile(r"inf\b|-\s*1e|-\s*10000|finfo")


def find(structure: Structure) -> Definition | None:
    """The function of a source that builds a causal mask of one length or two, or None."""
    for one in structure.definitions:
        if one.is_class or not _NAMED.search(one.name) or not _MAKES.search(one.text) or "softmax" in one.text:
            continue
        if lengths(one) in (1, 2):
            return one
    return None


def lengths(builder: Definition) -> int:
    """How many lengths it takes; 0 where it needs something else."""
    needed = [parameter for parameter in builder.call if parameter.default is None]
    if any(vocabulary.plain(one.name) == "device" for one in needed):
        return 0
    return len(needed) if all(_LENGTH.search(one.name.lower()) for one in needed) else 0


def documented(builder: Definition) -> str | None:
    """What its words say of True: keep, hide or additive; None where they do not say it."""
    return masks.documented(builder.text, builder.name)


def readings(reading: Reading, builder: Definition) -> Iterator[Reading]:
    """The reading with the mask that it builds, once for each meaning that words leave open, the likeliest first."""
    said = documented(builder)
    meanings = ["additive", "keep", "hide"] if _LOWEST.search(builder.text) else ["keep", "hide", "additive"]
    for meaning in [said] if said else meanings:
        yield replace(reading, builder=builder.name, lengths=lengths(builder), mask=meaning)
