"""The search for the reading of a function that builds a mask: a causal one, or one of padding."""

from __future__ import annotations

import types

from attn_kata.readings.candidates import builders, padding_builders
from attn_kata.readings.choice import Chosen, NotRead
from attn_kata.readings.reading import Reading, with_flags
from attn_kata.readings.searching.behaviour import Asked, Ranked
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source.structure import Definition


def run(search: Search, builder: Definition, others: tuple[str, ...]) -> Chosen | NotRead:
    """The reading of a source with a function that builds a mask, and no attention that fits."""
    found = built_mask(search, builder)
    if found is None:
        tried = f"{builder.name}: every call that was tried raises"
        return NotRead(tried=(*search.tried, tried), candidates=others)
    reading = found.reading
    return search.chosen(
        found,
        settled=reading.mask == "additive" or "mask" in search.given or _of(search).documented(builder) is not None,
        candidates=others,
    )


def built_mask(search: Search, builder: Definition) -> Ranked | None:
    """How a function that builds a mask is read; None if every call raises."""
    pipelines = [one for one in search.pipelines if one.entry == search.contract.builder]
    empty = Reading(kata=search.contract.kata, entry=builder.name, is_class=False)

    def ask(reading: Reading) -> Asked:
        return search.ask(reading, search.limits(reading), pipelines)

    of_mask = {key: value for key, value in search.given.items() if key in ("mask", "lengths", "call", "sure")}
    return search.best((with_flags(one, of_mask) for one in _of(search).readings(empty, builder)), ask)


def _of(search: Search) -> types.ModuleType:
    """The rules for the builders of the contract's mask."""
    return padding_builders if search.contract.mask == "keys" else builders
