"""What is made before the clock runs: the code of hunts and reviews, which has to be graded to be proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attn_kata import catalog
from attn_kata.interview.plans import Plan
from attn_kata.rounds import spoiled
from attn_kata.rounds.spoiled import Spoiled

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine
    from attn_kata.report.model import Report


def needs_engine(plan: Plan) -> bool:
    """Whether a round of the plan has code to prepare."""
    return any(one.kind in ("hunt", "review") for one in plan.rounds)


def prepared(plan: Plan, *, seed: int, engine: Engine) -> dict[int, Spoiled]:
    """The code of every hunt and review by its place in the plan. Raises UsageError, EngineFault."""

    def grade(slug: str, source: bytes) -> Report:
        return engine.grade(slug, source, attempt=f"{slug}.py")

    return {
        place: spoiled.make(catalog.find(one.kata), seed=seed + place, bugs=None, grade=grade)[0]
        for place, one in enumerate(plan.rounds)
        if one.kind in ("hunt", "review")
    }
