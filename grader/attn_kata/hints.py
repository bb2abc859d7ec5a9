"""Which hint comes next: one about the mistake that was last found, then the first that was not given yet."""

from __future__ import annotations

from dataclasses import dataclass

from attn_kata.catalog import Kata
from attn_kata.history import History


@dataclass(frozen=True, kw_only=True)
class Hint:
    """One hint of a kata. `mistake` is the id of the mistake that it is given for, and `left` how many were not given yet."""

    number: int
    text: str
    mistake: str | None
    left: int


def following(kata: Kata, history: History, wanted: int | None = None) -> Hint:
    """The next hint of the kata, or number `wanted`; it is recorded. After the last hint, the last again."""
    count = len(kata.hints)
    found = [(id, kata.hint_for(id)) for id in history.last_mistakes(kata.slug)]
    while True:
        given = history.hints_given(kata.slug)
        mistake, number = next(((id, number) for id, number in found if number and number not in given), (None, None))
        if wanted is not None:
            mistake, number = None, wanted
        if number is None:
            number = next((each for each in range(1, count + 1) if each not in given), count)
        if history.hint_given(kata.slug, number) or number in given:  # else another command gave it just now
            return Hint(number=number, text=kata.hints[number - 1], mistake=mistake, left=count - len(given | {number}))


def title(kata: Kata, hint: Hint) -> str:
    """`mha, hint 3 of 5, about scale.embed_dim`."""
    about = f", about {hint.mistake}" if hint.mistake else ""
    return f"{kata.slug}, hint {hint.number} of {len(kata.hints)}{about}"
