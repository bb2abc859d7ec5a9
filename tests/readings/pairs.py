"""A right piece of code and the same with a mistake edited in: what a reading has to give of both."""

from __future__ import annotations

from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report


def told(report: Report) -> set[str]:
    """The ids of the mistakes that a report names."""
    return {mistake.id for one in report.diagnosis for mistake in one.mistakes}


def right_and_wrong(engine: Engine, slug: str, text: str, old: str, new: str) -> tuple[Report, Report]:
    """The reports of the code, and of the code with this edit, read by other names. The right one must pass."""
    assert text.count(old) == 1
    right, wrong = (
        engine.grade(slug, (HEAD + each).encode(), attempt="mine.py", reads=True)
        for each in (text, text.replace(old, new))
    )
    assert right.outcome == "passed", (right.ungraded_because, [one.message for one in right.findings])
    return right, wrong
