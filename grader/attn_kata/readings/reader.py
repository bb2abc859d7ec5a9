"""Reads a source as a kata's contract asks: as a rotation, as a function that builds a mask, or as an attention."""

from __future__ import annotations

from attn_kata.readings.candidates import blocks, builders, calls, padding_builders
from attn_kata.readings.choice import Chosen, NotRead
from attn_kata.readings.searching import attention_search, builder_search, rotation_search
from attn_kata.readings.searching.search import Search

MOST_NAMED = 8  # definitions, where the file has none with the name that was given


def read(search: Search) -> Chosen | NotRead:
    """The reading, or what was tried. Raises AttemptDied when the attempt's process has died too often."""
    if search.contract.rotation:
        return rotation_search.run(search)
    structure, given = search.structure, search.given
    like = blocks.block_like if search.contract.is_block else blocks.attentions_first
    fitting = [one for one in like(structure) if calls.fits(one, search.contract)]
    tried = fitting
    if "entry" in given:
        named = structure.find(str(given["entry"]))
        tried = [named] if named is not None else []
        if named is None:
            others = ", ".join(one.name for one in structure.definitions[:MOST_NAMED])
            has = f"; it defines {others}" if others else ""
            search.tried.append(f"there is no '{given['entry']}' in the file{has}")
    builds_padding = search.contract.mask == "keys"
    rules = padding_builders if builds_padding else builders
    builder = rules.find(structure) if search.contract.builder else None
    if "builder" in given:
        builder = structure.find(str(given["builder"]))
    if builder is not None and (not tried or given.get("entry") == builder.name):
        return builder_search.run(search, builder, tuple(one.name for one in fitting))
    if builder is not None and (builds_padding or builders.takes_tokens(builder) or builders.needs(builder)):
        builder = None  # an attention is given a mask of padding, and no tokens to hand on
    mask_of = builder_search.built_mask(search, builder) if builder is not None else None
    return attention_search.run(search, tried, mask_of, candidates=tuple(one.name for one in fitting))
