"""What ran during a call, read from the texts in which the attempt's process tells it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What ran during a call, as the attempt's process tells it."""

    ops: frozenset[str]
    calls: tuple[str, ...]
    products: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]  # (operation, operands' sizes), in order
    strays: tuple[str, ...]


def recording(texts: tuple[str, ...]) -> Recording:
    """What the texts of a reply tell."""
    facts: dict[str, list[str]] = {"op": [], "call": [], "product": [], "stray": []}
    for text in texts:
        kind, _, fact = text.partition(" ")
        facts.get(kind, []).append(fact)
    products = []
    for fact in facts["product"]:
        name, _, sizes = fact.partition(" ")
        products.append((name, _sizes(sizes)))
    return Recording(
        ops=frozenset(facts["op"]),
        calls=tuple(facts["call"]),
        products=tuple(products),
        strays=tuple(facts["stray"]),
    )


def _sizes(text: str) -> tuple[tuple[int, ...], ...]:
    """The operands' sizes, printed by the profiler as nested lists."""
    return tuple(
        tuple(int(size) for size in re.findall(r"\d{1,9}", operand)) for operand in re.findall(r"\[([\d, ]*)\]", text)
    )
