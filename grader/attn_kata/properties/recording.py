"""What ran during a call, and what it cost, read from the texts in which the attempt's process tells it."""

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


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the operations of a call cost, as the attempt's process tells it. Without gradients, in one thread.

    made: the elements of all tensors with new storage. Views, `expand`, slices and writing in place make none.
    largest: the elements of the largest of them.
    multiplied: the multiplications of matrix products and of elementwise products.
    rows: the rows that are multiplied with a weight of the module, one product after another.
    """

    made: int
    largest: int
    multiplied: int
    rows: int


def cost(texts: tuple[str, ...]) -> Cost:
    """What the texts of a reply tell. What they do not tell is 0."""
    told = {"made": 0, "largest": 0, "multiplied": 0, "rows": 0}
    for text in texts:
        name, _, number = text.partition(" ")
        if name in told and number.isdecimal() and len(number) < 19:
            told[name] = int(number)
    return Cost(**told)


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
