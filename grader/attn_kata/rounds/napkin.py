"""Napkin numbers: bytes, FLOPs and parameters without code, with a tolerance, in the units that people type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from attn_kata import quantities
from attn_kata.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Question:
    """One numeric question with its numbers drawn. `working` is how the answer is found; `tolerance` is relative."""

    kata: str
    ask: str
    answer: float
    unit: str
    tolerance: float
    working: str

    @property
    def answer_text(self) -> str:
        """`2,048 bytes`."""
        return f"{quantities.text(self.answer)} {self.unit}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A judged answer. `note` says in a sentence what is off, where that can be seen; it is empty otherwise."""

    text: str
    right: bool
    note: str = ""


def of(drawn: Mapping[str, Any]) -> Question:
    """The question of a drawn numeric follow-up (`interview.follow_ups.numeric` draws them)."""
    return Question(
        kata=drawn["kata"],
        ask=drawn["ask"],
        answer=float(drawn["answer"]),
        unit=drawn["unit"],
        tolerance=drawn["tolerance"],
        working=drawn["explain"],
    )


def judge(question: Question, text: str) -> Answer:
    """Whether the number is right. Raises UsageError for what is no number.

    The unit may be left out. A unit that counts something else makes the answer wrong.
    """
    if not text.strip():
        raise UsageError("The answer is empty.", next_step="Type a number, for example: 1536, 1.3e9, 2^20, 128 KiB")
    number = text.strip()
    if question.unit and number.lower().endswith(question.unit.lower()):  # "12 tokens"
        number = number[: -len(question.unit)]
    given = quantities.parse(number)
    if given.unit and given.unit != question.unit:
        asked = question.unit or "a number without a unit"
        return Answer(text=text.strip(), right=False, note=f"You gave {given.unit}, and the question asks for {asked}.")
    right = math.isclose(given.value, question.answer, rel_tol=question.tolerance, abs_tol=1e-12)
    return Answer(text=text.strip(), right=right, note="" if right else _ratio(given.value, question))


def _ratio(value: float, question: Question) -> str:
    """How far off the answer is, where a simple factor says it."""
    if not value or not question.answer or (value < 0) != (question.answer < 0):
        return ""
    for name, ratio in (("1,024 instead of 1,000", 1.024), ("1,000 instead of 1,024", 1 / 1.024)):
        for power in (1, 2, 3, 4):
            if math.isclose(value / question.answer, ratio**power, rel_tol=1e-3):
                return f"It looks as if you counted with {name}."
    for factor in (2, 3, 4, 8, 16, 32, 100, 1000):
        for share in (Fraction(factor), Fraction(1, factor)):
            if math.isclose(value / question.answer, float(share), rel_tol=question.tolerance):
                said = f"{factor} times" if share >= 1 else f"1/{factor} of"
                return f"Your number is {said} the answer."
    return ""
