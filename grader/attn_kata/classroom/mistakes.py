"""What a class needs of the diagnosis: the ids of the mistakes, and their explanation without numbers. Loads no torch."""

from __future__ import annotations

from functools import cache

from attn_kata.diagnosis import catalogue


@cache
def ids() -> tuple[str, ...]:
    """The id of every mistake that the diagnosis knows."""
    return tuple(catalogue.load())


def plain_explanation(id: str, otherwise: str) -> str:
    """What the mistake is, without the sizes of a hidden case; `otherwise` for one that has no entry."""
    return catalogue.load()[id].plain if id in ids() else otherwise
