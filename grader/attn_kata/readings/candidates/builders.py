"""Functions that build a causal mask, by other names: of one length or of two, or of tokens with this length.

True keeps or hides, or they are 0 and -inf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata.readings.candidates import masks
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure, code_of

_NAMED = re.compile(r"mask|causal|triang|future|subsequent|look_?ahead|attend", re.IGNORECASE)
_MAKES = re.compile(r"\btri[lu]\b|arange|range\(")
_LENGTH = re.compile(
    r"^(?:n|m|t|s|l|tq|tk|q|k|sz|size|len|dim|seq|length|steps|tokens|context|block_size|长度)$"
    r"|len|size|length|num_|^n_|steps|queries|keys|seq|sz$"
)
LOWEST = re.compile(r"inf\b|-\s*1e|-\s*10000|finfo")


def find(structure: Structure) -> Definition | None:
    """The function of a source that builds a causal mask of one length or two, or None."""
    for one in structure.own:
        if one.is_class or not _NAMED.search(one.name) or not _MAKES.search(one.text) or "softmax" in code_of(one.text):
            continue
        if lengths(one) in (1, 2):
            return one
    return None


def lengths(builder: Definition) -> int:
    """How many lengths it takes; 0 where it needs something else."""
    more = [name for name, _ in needs(builder)]
    needed = [parameter for parameter in builder.call if parameter.default is None and parameter.name not in more]
    if len(needed) == 1 and takes_tokens(builder):
        return 1
    if any(_is_tensor(one, builder.text) for one in needed):
        return 0  # the lengths of samples: a mask of padding
    return len(needed) if all(_LENGTH.search(one.name.lower()) for one in needed) else 0


def needs(builder: Definition) -> Pairs:
    """What it must be given beside lengths: a device, a dtype."""
    known = [(one.name, vocabulary.plain(one.name)) for one in builder.call if one.default is None]
    return tuple((name, plain) for name, plain in known if plain in ("device", "dtype"))


def _is_tensor(parameter: Parameter, text: str) -> bool:
    """Whether a length is no number: by its annotation, or by what is done with it."""
    name = re.escape(parameter.name)
    used = rf"(?<![\w.]){name}\s*(?:\[|\.(?:device|dtype|unsqueeze|view|reshape|expand|max|shape|size|to|long)\b)"
    return "Tensor" in parameter.annotation or re.search(used, text) is not None


def takes_tokens(builder: Definition) -> bool:
    """Whether the length is that of a tensor which it gets first."""
    name = re.escape(builder.call[0].name) if builder.call else ""
    return bool(name) and re.search(rf"\b{name}\.(?:size\(|shape\b)", builder.text) is not None


def documented(builder: Definition) -> str | None:
    """What its words say of True: keep, hide or additive; None where they do not say it."""
    said = masks.documented(builder.text, builder.name)
    return None if said is None else said.meaning


def readings(reading: Reading, builder: Definition) -> Iterator[Reading]:
    """The reading with the mask that it builds, once for each meaning that words leave open, the likeliest first."""
    said = documented(builder)
    meanings = ["additive", "keep", "hide"] if LOWEST.search(builder.text) else ["keep", "hide", "additive"]
    one = replace(reading, builder=builder.name, lengths=lengths(builder))
    ways = [replace(one, call=needs(builder))]
    if takes_tokens(builder):  # (B, T), or (B, T, E)
        given = ((builder.call[0].name, "x"), *needs(builder))
        ways = [replace(one, call=given, dims=dims) for dims in (2, 3)]
    for meaning in [said] if said else meanings:
        yield from (replace(way, mask=meaning) for way in ways)
