"""What else of a source is graded beside what was read: its mask, its cache, its output layer, and the definitions around it.

Told by its structure; loads no torch and runs nothing.
"""

from __future__ import annotations

from typing import Any

from attn_kata import catalog
from attn_kata.readings import contract, inference
from attn_kata.readings.candidates import blocks, caching
from attn_kata.readings.reading import Reading, parse, with_flags
from attn_kata.readings.source import methods, structure, syntax, usage

_SETTLED = {
    **dict.fromkeys(("processor", "full_precision", "one_sample", "one_length", "float32", "alike"), "no"),
    "multiple": "1",
}
_ADDS = "{} adds the result, with no layer between"
_IDENTITY = "Its {} is nn.Identity(), which does nothing"


def blocks_around(source: bytes, attention: str) -> list[tuple[str, str]]:
    """The blocks of the source that use this attention: for each the kata that grades it, and its name."""
    return [(inference.BLOCK, name) for name in blocks.around(syntax.of_source(source), attention)]


def with_mask(described: dict[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    """The kata that grades code with its mask, and the flags, where it was read as one head of a kata that has no mask.

    `described` is the `reading` of a report. None where the code takes no mask, or the kata has one.
    """
    known = contract.of_kata(catalog.find(described["kata"]).folder)
    untried = any(one.startswith("its mask is not tried") for one in described["departures"])
    if known is None or not untried or not known.is_self or known.has_heads or known.place_of_mask is not None:
        return None
    return inference.WITH_HEADS, (f"entry={described['entry']}",)


def without_output(source: bytes, described: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """The flags that read code as one whose output layer is missing, and what says so; () where it may be elsewhere.

    Several heads that are joined and go through no layer are a mistake where a class of the file adds them to its input as they
    are, where the code is such a class, or where it has nn.Identity() in the place of the layer.
    """
    found = syntax.of_source(source)
    definition = found.find(described["entry"])
    known = contract.of_kata(catalog.find(described["kata"]).folder)
    read = parse(tuple(described["flags"]))
    if definition is None or known is None or not definition.is_class or "o" not in known.layers or "o" in read:
        return (), ""
    sizes = [value for key in ("build", "globals", "constants") for _, value in read.get(key, ())]  # type: ignore[attr-defined]
    if "H" not in sizes or "one_head" in read or "residual" in read or "no_output" in read:
        return (), ""
    adds = definition.name if known.is_block else usage.adds_it_as_it_is(definition, found)
    nothing = _IDENTITY.format(name) if (name := usage.output_that_is_nothing(definition, found)) else ""
    says = _ADDS.format(adds) if adds else nothing
    return ((*described["flags"], "no_output=yes"), says) if says else ((), "")


def through_cache(source: bytes, described: dict[str, Any], chunks: int = 0) -> tuple[str, ...]:
    """The flags that read code with its cache, for one token after the other, beside the reading of whole sequences.

    `chunks`: how many tokens a call gets after that of the first token, in the place of one.

    `described` is the `reading` of a report. Without flags where the code has no cache, or one that is called in a way that is
    not known.
    """
    found = syntax.of_source(source)
    definition = found.find(described["entry"])
    known = contract.of_kata(catalog.find(described["kata"]).folder)
    read = parse(tuple(described["flags"]))
    if definition is None or known is None:
        return ()
    reading = with_flags(Reading(kata=known.kata, entry=definition.name, is_class=True), read)
    whole = caching.through(reading, known, definition, found, chunks)
    if whole is None:
        return ()
    flags = [flag for flag in whole.flags() if not flag.startswith(("returns=", "square="))]
    settled = [
        f"{name}={none}" for name, none in _SETTLED.items() if name not in read
    ]  # by the reading of whole sequences
    return (*flags, "order=batch", "dims=0", *settled)


def beside(source: bytes, entry: str) -> list[tuple[str, str]]:
    """The other attentions of a source, kata and name: none that this one uses, nor one that uses it."""
    found = syntax.of_source(source)
    read = found.find(entry)
    if read is None:
        return []
    used = {one.name for one in found.reach(read)}
    others: dict[str, str] = {}
    for slug, name, _ in inference.katas_of(source):
        other = found.find(name)
        apart = other is not None and other.is_class == read.is_class and read not in found.reach(other)
        if apart and name not in used and slug != inference.BLOCK:
            others.setdefault(name, slug)
    return [(slug, name) for name, slug in others.items()]


def parts_of(source: bytes, name: str) -> dict[str, bool]:
    """The definitions of the source that this one uses: for each, whether it is an attention without it, too."""
    found = syntax.of_source(source)
    whole = found.find(name)
    if whole is None:
        return {}
    return {one.name: structure.stands_alone(one, whole) for one in found.reach(whole) if one is not whole}


def is_all_of(source: bytes, name: str) -> bool:
    """Whether what is right says that its attention is: not of a method, where its class has layers for q and k around it.

    Of a decoder, or of a class that is named otherwise, such a method is all of the attention.
    """
    whole = syntax.of_source(source).find(name.partition(".")[0]) if methods.alone(source, name) is not None else None
    if whole is None:
        return True
    named = structure.is_named_attention(whole) and not structure.is_model(whole)
    return not named and not structure.has_layers_of_attention(whole)
