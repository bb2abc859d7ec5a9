"""Which part of a returned tuple is the output, and what a refused result was, by the sentence of the attempt's process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from attn_kata.readings.candidates import scores
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import averages, fits
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition

MOST_PLACES = 4  # of a tuple; the output is never further behind

_TUPLE = re.compile(r"returned a (?:tuple|list) of (\d{1,4})")
_NAMES = re.compile(r"returned a (?:dict|dataclass) with ((?:[^\W\d]\w*, )*[^\W\d]\w*)")


def parts_of(said: str) -> tuple[str, ...]:
    """The places in a returned tuple, as numbers, or the names in a returned dict or dataclass; () for anything else."""
    found = _TUPLE.search(said)
    if found is not None:
        return tuple(map(str, range(int(found[1]))))
    found = _NAMES.search(said.partition(" as ")[0])
    return tuple(found[1].split(", ")) if found is not None else ()


def with_places(search: Search, definition: Definition, readings: Iterable[Reading]) -> Iterator[Reading]:
    """Each reading, and where the code returns a tuple the readings of its places instead."""
    for one in readings:
        raised = search.raised(one, search.unmasked)
        found = next((parts for text in raised if (parts := parts_of(text))), ())
        if not found or "returns" in search.given:
            yield one
            if search.contract.has_score and "returns" not in search.given:
                yield replace(one, returns="weights")
            continue
        has_names = not found[0].isdecimal()
        names = found if has_names else next((each for each in definition.returned if len(each) == len(found)), ())
        first = range(min(len(found), MOST_PLACES))
        named = [place for place in first if not names or names[place]]  # not the None of (out, None)
        places = sorted(named, key=lambda place: bool(names and vocabulary.is_beside(names[place])))
        beside = [place for place in places[1:] if names and vocabulary.is_beside(names[place])] or places[1:]
        if search.contract.returns and beside:  # weights that are returned are asked for
            both = replace(one, returns=f"{found[places[0]]},{found[beside[0]]}")
            yield both
            asked = search.unmasked(both)
            if averages(asked):  # a convention, and no mistake
                yield replace(one, returns=found[places[0]])
            elif not fits(asked):  # no weights, but a cache; or names that say it the other way round
                yield replace(one, returns=f"{found[beside[0]]},{found[places[0]]}")
                yield from (replace(one, returns=found[place]) for place in places)
            continue
        outputs = [replace(one, returns=found[place]) for place in places]
        yield from outputs
        # Weights beside an output are not taken in its place: what is wrong in the output would be hidden.
        is_named = any(names and vocabulary.is_output(names[place]) for place in places)
        is_there = is_named or any(fits(search.unmasked(each)) for each in outputs)
        # Neither a layer after it nor the query beside it is any kata's.
        is_there = is_there and not scores.layers_after(definition) and not scores.joins_query(definition)
        if search.contract.has_score and not is_there:
            yield from (replace(one, returns=f"weights:{found[place]}") for place in reversed(places))
