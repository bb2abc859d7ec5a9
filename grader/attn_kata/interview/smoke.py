"""The public smoke check of a session: does the attempt import, run, give the right shape, and match the worked example?

It runs isolated in the engine like every grading, with the example added at the end of the source. Its result contains
nothing of the hidden tests.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from attn_kata import catalog, templates
from attn_kata.interview import content
from attn_kata.report.plain import capped
from attn_kata.report.summary import more_lines

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

SECONDS = 10.0  # as for a single call of a grading
MOST_LINES, MOST_CHARACTERS = 60, 4_000  # of what the attempt printed
SAID_LINES, SAID_CHARACTERS = 20, 1_500  # of the results of the example and of the shapes
MATCHES = "The example: out is as expected."
LOST = "The example: its result is lost, because your code prints too much. Print less, and run again."


@dataclass(frozen=True, kw_only=True)
class Smoke:
    """The result of a run. `output` has the attempt's prints, safe to show, and the result of the example."""

    outcome: Literal["passed", "failed", "ungraded"]
    shape: str
    output: str

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines, for a terminal or a pane."""
        return tuple(part for part in (*self.output.splitlines(), self.shape) if part)


def run(engine: Engine, slug: str, source: bytes, *, attempt: str, seed: int = 0) -> Smoke:
    """Run the smoke check. Raises EngineFault where the engine itself fails, never for anything the attempt does."""
    mark, asked = f"-- {secrets.token_hex(8)} --", catalog.find(slug).shapes
    report = engine.grade(
        slug,
        source + _added(slug, mark),
        attempt=attempt,
        seed=seed,
        timeout=SECONDS,
        properties=asked,
        diagnose=False,
    )
    printed, ended, rest = report.attempt_output.partition(mark)
    said = _seen(rest.partition(mark)[0])  # after it come prints of calls with random inputs
    if not ended and report.outcome != "ungraded":
        said = f"Your code stops before the example: {_seen(report.stopped_by)}" if report.stopped_by else LOST
    output = "\n".join(part for part in (_first(printed, MOST_LINES, MOST_CHARACTERS), said) if part)
    if report.outcome == "ungraded":
        because = (report.ungraded_because or "no reason given").replace(
            "while it was imported", "while it was imported, or in the example"
        )
        return Smoke(outcome="ungraded", shape=_seen(f"It does not run: {because}"), output=output)
    if report.not_written:
        return Smoke(outcome="failed", shape="" if "not written yet" in said else "Not written yet.", output=output)
    shapes = [finding for finding in report.findings if finding.property in asked]
    shape = next((finding for finding in shapes if finding.outcome != "passed"), None)
    if shape is None:
        return Smoke(outcome="passed" if said == MATCHES else "failed", shape="Shapes: right.", output=output)
    if shape.outcome == "skipped":  # it needs a property that is hidden
        return Smoke(
            outcome="failed", shape="Shapes: not checked, because your code does not run so far.", output=output
        )
    case = " ".join(f"{name}={value}" for name, value in (shape.case or {}).items())
    at = f" at {case}" if case else ""
    return Smoke(outcome="failed", shape=_seen(f"Shapes{at}: {shape.message or shape.outcome}"), output=output)


def _added(slug: str, mark: str) -> bytes:
    example = content.of_kata(slug).example
    return templates.render("interview_smoke.py.j2", example=example, mark=mark).encode()


def _seen(text: str) -> str:
    return _first(text, SAID_LINES, SAID_CHARACTERS)


def _first(text: str, lines: int, characters: int) -> str:
    """The beginning of `text`, safe to show, and the number of lines left out."""
    kept, left_out = capped(text.strip("\n"), lines=lines, characters=characters)
    return "\n".join([*kept, more_lines(left_out)] if left_out else kept)
