"""Code that takes only sequences of the length that it was built with: it is built anew for each length."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from attn_kata.readings.candidates import arguments, roles
from attn_kata.readings.candidates.building import LOOK
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import Ranked
from attn_kata.readings.source import usage

if TYPE_CHECKING:
    from attn_kata.readings.searching.definition_search import DefinitionSearch

# What it raises about, and what it is to be built with then: with one more where its mask is one shorter.
_LENGTHS = {int(LOOK["L"]): "L", int(LOOK["L"]) - 1: "L+1", int(LOOK["L"]) + 1: "L-1"}


def has_one_length(one: DefinitionSearch, ranked: Ranked | None, readings: list[Reading]) -> bool:
    """Whether all raises, and what it raises is about the length that the code was built with."""
    built = [value for each in readings[:1] for _, value in each.sizes]
    told = not {*_LENGTHS.values(), arguments.WINDOW} & set(built) or "one_length" in one.given
    if told or (ranked is not None and ranked.answers):
        return False
    return one.contract.is_module and _length_that_it_takes(one, readings) is not None


def views_by_another(one: DefinitionSearch, reading: Reading) -> bool:
    """Whether a class that takes query, key and value apart raises for other keys than queries, at a view of its own.

    Not where its name, or all of its callers, say that it is for one sequence with itself; nor where it hides later keys,
    or queries; nor for two inputs whose names say nothing of them, as x and y.
    """
    contract, structure = one.contract, one.search.structure
    takes_both = contract.is_module and (contract.takes_qkv or contract.is_cross)
    if not takes_both or reading.causal or reading.hides_queries or re.search(r"(?i)self|causal", one.definition.name):
        return False
    if usage.is_given_its_own_alone(one.definition, structure) or roles.is_of_two_unnamed(one.definition):
        return False
    asking = one.search.masked if reading.needs_mask else one.search.unmasked
    raised = [each for each in one.search.exceptions(reading, asking) if each.frames]
    return bool(raised) and all(
        _INVALID_VIEW.search(each.text) is not None and _VIEW.search(structure.line(each.frames[-1][0])) is not None
        for each in raised
    )


_INVALID_VIEW = re.compile(r"^shape '\[[-\d, ]+\]' is invalid for input of size \d+$")
_VIEW = re.compile(r"\b(?:view|reshape)\(")


def _length_that_it_takes(one: DefinitionSearch, readings: list[Reading]) -> str | None:
    """What to build code with that raises about the length that it was built with, or about one next to that; or None."""
    raised = [text for each in readings for text in one.search.raised(each, one.search.unmasked)]
    every = ((length, rf"\b{number}\b") for number, length in _LENGTHS.items())
    return next((length for length, number in every if any(re.search(number, text) for text in raised)), None)


def of_one_length(
    one: DefinitionSearch, ranked: Ranked | None, readings: list[Reading], *, needs_mask: bool
) -> tuple[Ranked | None, list[Reading]]:
    """The best reading of code that is built anew for each length, and the readings that were tried; or what was best."""
    square = one.contract.takes_qkv and "square" not in one.given
    length = _length_that_it_takes(one, readings)
    built = [
        tuple((name, length if value == "L" and length else value) for name, value in each.build) for each in readings
    ]
    tried = [
        replace(each, build=build, one_length=True, square=square or each.square)
        for each, build in zip(readings, built, strict=True)
    ]
    found = one.best(tried)
    if (found is None or not found.answers) and one.is_narrow(tried):
        tried = [replace(each, float32=True) for each in tried]
        found = one.best(tried)
    if (found is None or not found.answers) and needs_mask:
        tried = list(one.forms.needing(tried))
        found = one.best(tried)
    return (found, tried) if found is not None and found.answers else (ranked, readings)
