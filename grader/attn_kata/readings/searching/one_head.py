"""Code that raises in every call, and is right where it is built with one head: its split or merge has a wrong size."""

from __future__ import annotations

from dataclasses import replace

from attn_kata.diagnosis.outcomes import about_shapes
from attn_kata.properties.failures import Raised
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import answers, mistakes
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import vocabulary


def raised_by_several(search: Search, reading: Reading) -> Raised | None:
    """What code raises about shapes for several heads, where it is right with one, and its sizes have known names."""
    contract = search.contract
    if not (contract.is_module and contract.has_heads) or contract.has_groups or contract.is_block or reading.one_head:
        return None
    built = dict(reading.build)
    known = {vocabulary.size_of(name.rpartition(".")[2]): value for name, value in built.items()}
    if known.get("H") != "H" or known.get("E") != "E":
        return None
    if any(reading.layer(role).layout == "shared" for role in "qkvo"):
        return None  # layers as wide as one head, which may be meant to be as wide as x
    raised = search.exceptions(reading, search.unmasked)
    if not raised or not all(one.frames and about_shapes(one.text) for one in raised):
        return None
    build = tuple((name, "1" if value == "H" else value) for name, value in reading.build)
    asked = search.unmasked(replace(reading, build=build, one_head=True))
    return raised[0] if answers(asked) and mistakes(asked, 0) == 0 else None
