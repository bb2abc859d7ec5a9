"""Functions that build a mask of padding, by other names: of tokens and the padding's id, or of lengths.

Their result may have sizes of 1 before the keys, or a row for each query; True keeps or hides, or it is 0 and -inf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata.readings.candidates import masks
from attn_kata.readings.candidates.builders import LOWEST
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure, code_of

_NAMED = re.compile(r"mask|pad", re.IGNORECASE)
_COMPARES = re.compile(r"[!=]=|\.n?eq_?\(|\b(?:ne|eq|lt|gt|ge|le|less|greater)\(|<|>")
_TOKENS = re.compile(r"seq|src|tgt|trg|token|ids?$|inputs?|^inp|sent|source|target|batch|^[xqk]$|words|data")
_MAX = re.compile(r"max|^(?:t|l|n|size|length|seq_len|total)$")
_PAD = re.compile(r"pad", re.IGNORECASE)
_OF_A_NUMBER = r"(?:!=|==|\.n?eq_?\(|\b(?:ne|eq)\(\s*\w+\s*,)\s*(?:(\d+)|((?:\w+\.)*\w*[Pp][Aa][Dd]\w*))"


def find(structure: Structure) -> Definition | None:
    """The function of a source that builds a mask of padding, or None."""
    return next((one for one in structure.own if _named_so(one) and call(one)), None)


def _named_so(one: Definition) -> bool:
    named = not one.is_class and _NAMED.search(one.name) is not None
    code = code_of(one.text)
    of_padding = re.search(r"softmax|tri[lu]", code) is None  # a triangle beside it makes another mask
    return named and _COMPARES.search(code) is not None and of_padding


def call(builder: Definition) -> Pairs:
    """What each of its parameters gets; () where it needs something else, or is given no tokens and no lengths."""
    pairs = []
    for parameter in builder.call:
        what = _given(parameter, builder)
        if what is None and parameter.default is None:
            return ()
        if what is not None:
            pairs.append((parameter.name, what))
    values = [value.partition("_")[0] for _, value in pairs]
    of_one = values.count("lengths") < 2  # the lengths of two sequences make a mask from one to the other
    return tuple(pairs) if {"tokens", "lengths"} & set(values) and of_one else ()


def _given(parameter: Parameter, builder: Definition) -> str | None:
    name = parameter.name.lower()
    if name == "device":
        return "device" if parameter.default is None else None
    if name == "dtype" or parameter.annotation == "bool":
        return None
    if _PAD.search(name) and "mask" not in name:
        return "0"
    if re.search(r"max", name) and not _is_indexed(parameter, builder):
        return "max_len"
    if vocabulary.is_lengths(name) and (name.endswith("s") or _is_indexed(parameter, builder)):
        return "lengths"
    if _MAX.search(name) and not _is_indexed(parameter, builder):
        return "max_len" if parameter.default is None or parameter.default == "None" else None
    if parameter.default in (None, "None") and _TOKENS.search(name):
        return f"tokens_padded_by_{_padding(builder)}"
    return None


def _is_indexed(parameter: Parameter, builder: Definition) -> bool:
    """Whether a parameter is a tensor: by its annotation, or by what is done with it."""
    name = re.escape(parameter.name)
    used = rf"(?<![\w.]){name}\s*(?:\[|\.\w)|(?:len|enumerate|tensor|max)\(\s*{name}\b"
    return "Tensor" in parameter.annotation or re.search(used, builder.text) is not None


def _padding(builder: Definition) -> str:
    """The id of the padding: what the tokens are compared with, a number or a name at module level; else 0."""
    given = {one.name for one in builder.call}
    found = re.search(_OF_A_NUMBER, builder.text)
    if found is None:
        return "0"
    name = found[2] or found[1]
    return name if name not in given and (name.isidentifier() or name.isdecimal()) else "0"


def documented(builder: Definition) -> str | None:
    """What its words say of True: keep, hide or additive; None where they do not say it."""
    said = masks.documented(builder.text, builder.name)
    return None if said is None else said.meaning


def readings(reading: Reading, builder: Definition) -> Iterator[Reading]:
    """The reading with the mask that it builds, once for each meaning that words leave open, the likeliest first."""
    said = documented(builder)
    meanings = ["additive", "keep", "hide"] if LOWEST.search(builder.text) else ["keep", "hide", "additive"]
    for meaning in [said] if said else meanings:
        yield replace(reading, builder=builder.name, call=call(builder), mask=meaning)


def source(reading: Reading, entry: str) -> str:
    """The contract's function that builds a mask, True = keep, by theirs."""
    meant = {"keep": "mask.bool()", "hide": "~mask.bool()", "additive": "mask == 0"}[reading.mask]
    padded = next((value for _, value in reading.call if value.startswith("tokens")), "tokens_padded_by_0")
    id = padded.removeprefix("tokens_padded_by_")
    known = id if id.isdecimal() else f"_known({id!r})"
    arguments = ", ".join(
        f"{name}={'tokens' if value.startswith('tokens') else 'lengths.device' if value == 'device' else value}"
        for name, value in reading.call
    )
    return f"""


def _known(name):
    value = _theirs.__globals__.get(name, 0)
    if not isinstance(value, int):  # its import is missing
        value = _theirs.__globals__[name] = 0
    return value


def {entry}(lengths, max_len):
    real = _torch.arange(max_len, device=lengths.device) < lengths[:, None]
    padding = {known}
    tokens = _torch.where(real, padding + 1, padding)
    mask = {reading.builder}({arguments})
    if isinstance(mask, (tuple, list)) and len(mask) and isinstance(mask[0], _torch.Tensor):
        mask = mask[0]
    mask = {meant}
    if mask.shape[-1] < max_len and {"max_len" not in arguments and "tokens" not in arguments}:
        hidden = mask.new_zeros(*mask.shape[:-1], max_len - mask.shape[-1])
        mask = _torch.cat([mask, hidden], -1)  # it is as wide as the longest sample
    while mask.dim() > 2 and (mask.shape[1] == 1 or bool((mask == mask[:, :1]).all())):
        mask = mask[:, 0]
    return mask
"""
