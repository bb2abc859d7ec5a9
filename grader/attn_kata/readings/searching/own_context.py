"""Code that must be given keys and values, and computes with the query alone: read as self-attention, it would be right."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.readings.candidates import roles
from attn_kata.readings.choice import Beside
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import mistakes
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import usage
from attn_kata.readings.source.structure import Definition

_OTHER = "x.flip(-1)"  # other numbers of the same shape
_OF_ONE_SEQUENCE = re.compile(r"(?i)self|causal")


def beside(search: Search, reading: Reading, definition: Definition) -> tuple[Beside, ...]:
    """That the keys or the values of its call have no part in the result. Not where it says that all three are the same."""
    contract = search.contract
    if not (contract.is_self and contract.is_module) or reading.by_token or reading.square:
        return ()
    if _OF_ONE_SEQUENCE.search(definition.name):
        return ()
    what = roles.call_inputs(definition)
    asked_for = [one.name for one in definition.call if one.default is None and what.get(one.name) in ("k", "v")]
    given = dict(reading.call)
    of_x = [name for name in asked_for if given.get(name) == "x"]
    if not of_x or "x" not in [value for name, value in reading.call if name not in of_x]:
        return ()
    if usage.is_given_its_own_alone(definition, search.structure):
        return ()
    ignored = [name for name in of_x if _has_no_part(search, reading, name)]
    if not ignored:
        return ()
    way = f"--kata {contract.kata} --read square=yes"  # as another kata, it has keys of its own
    words = f"other numbers for {' and '.join(ignored)} change nothing. If it is for self-attention only: {way}"
    return (Beside(ids=("context.ignored",), property="values", words=words),)


def _has_no_part(search: Search, reading: Reading, name: str) -> bool:
    """Whether the result is the same, and right, with other numbers for one input."""
    call = tuple((each, _OTHER if each == name else value) for each, value in reading.call)
    other = replace(reading, call=call)
    return mistakes(search.masked(other) if reading.needs_mask else search.unmasked(other), 0) == 0
