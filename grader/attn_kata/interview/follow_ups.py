"""The follow-up questions: which are asked, with which numbers, and whether an answer is right."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping
from typing import Any

from attn_kata import quantities
from attn_kata.errors import UsageError
from attn_kata.interview import formulas
from attn_kata.interview.content import FollowUp

ALONE, TOGETHER = 3, 2  # questions for a session of one kata, and for each kata of a longer one
LONGEST_ANSWER = 10_000  # characters of a free one


def draw(slug: str, every: tuple[FollowUp, ...], *, seed: int, count: int) -> list[dict[str, Any]]:
    """`count` questions of a kata, with their numbers. The same seed gives the same questions, one of each kind first."""
    chance = random.Random(int.from_bytes(hashlib.sha256(f"{seed} {slug}".encode()).digest()[:8], "big"))
    every = tuple(one for one in every if one.kind != "derive")
    shuffled = chance.sample(every, len(every))
    kinds = (
        ["numeric", "choice", "free"] if count >= ALONE else chance.choice((["numeric", "choice"], ["numeric", "free"]))
    )
    chosen = [next(one for one in shuffled if one.kind == kind) for kind in kinds]
    chosen += [one for one in shuffled if one not in chosen][: count - len(chosen)]
    return [_put(slug, one, chance) for one in chosen[:count]]


def numeric(slug: str, every: tuple[FollowUp, ...], *, seed: int, count: int) -> list[dict[str, Any]]:
    """`count` numeric questions of a kata, or all it has, with their numbers drawn by the seed."""
    return _drawn(slug, [one for one in every if one.kind == "numeric"], f"{seed} {slug} napkin", count)


def derivations(slug: str, every: tuple[FollowUp, ...], *, seed: int, count: int) -> list[dict[str, Any]]:
    """`count` derivations of a kata, or all it has. They are answered and ticked like free questions."""
    return _drawn(slug, [one for one in every if one.kind == "derive"], f"{seed} {slug} derive", count)


def _drawn(slug: str, asked: list[FollowUp], seed: str, count: int) -> list[dict[str, Any]]:
    chance = random.Random(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big"))
    return [_put(slug, one, chance) for one in chance.sample(asked, min(count, len(asked)))]


def judge(question: Mapping[str, Any], answer: str) -> bool | None:
    """Whether `answer` is right; None for a free answer, which the candidate ticks. Raises UsageError for no answer."""
    text = answer.strip()
    if not text:
        raise UsageError("The answer is empty.", next_step="Write one, or skip the question: attn-kata interview next")
    if question["kind"] == "free":
        if len(text) > LONGEST_ANSWER:
            raise UsageError(f"An answer has at most {LONGEST_ANSWER:,} characters, not {len(text):,}.")
        return None
    if question["kind"] == "choice":
        options = question["options"]
        if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:9]) <= len(options):
            raise UsageError(
                f"'{_short(text)}' is not one of the options.", next_step=f"Give a number from 1 to {len(options)}"
            )
        return bool(int(text) == question["answer"])
    expected = float(question["answer"])
    return math.isclose(quantities.parse(text).value, expected, rel_tol=question["tolerance"], abs_tol=1e-12)


def _put(slug: str, one: FollowUp, chance: random.Random) -> dict[str, Any]:
    put: dict[str, Any] = {
        "kata": slug,
        "kind": "free" if one.kind == "derive" else one.kind,
        "ask": one.ask,
        "explain": one.explain,
    }
    if one.kind == "numeric":
        numbers = {name: chance.choice(values) for name, values in one.draw.items()}
        answer = one.answer
        if one.formula:
            answer = formulas.FORMULAS[one.formula](**numbers, **one.fixed)
        put["ask"] = one.ask.format(**numbers)
        put["explain"] = one.explain.format(**numbers, answer=quantities.text(answer))
        put.update(answer=answer, unit=one.unit, tolerance=one.tolerance, numbers=numbers)
    elif one.kind == "choice":
        order = chance.sample(range(len(one.options)), len(one.options))
        put.update(options=[one.options[place] for place in order], answer=order.index(int(one.answer) - 1) + 1)
    else:
        put.update(points=list(one.points), source=one.source)
    return put


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
