"""The public smoke check of a session: does the attempt import, run, have the right shape, and give the worked example?

It runs in the engine like every grading, isolated, with the example added at the end of the source. Nothing of what the
hidden tests know is in what comes back.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from attn_kata.interview import content, stubs
from attn_kata.report.plain import plain

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

SHAPE_PROPERTY = "output_shape"
SECONDS = 10.0  # as for a single call of a grading
MOST_LINES = 60


@dataclass(frozen=True, kw_only=True)
class Smoke:
    """What a candidate sees of a run. `output` is what the attempt printed, made plain, and the example's line."""

    outcome: Literal["passed", "failed", "ungraded"]
    shape: str
    output: str

    @property
    def lines(self) -> tuple[str, ...]:
        """Everything, for a terminal or a pane."""
        return tuple(part for part in (*self.output.splitlines(), self.shape) if part)


def run(engine: Engine, slug: str, source: bytes, *, attempt: str, seed: int = 0) -> Smoke:
    """Run the smoke check. Raises EngineFault where the engine itself fails, never for anything the attempt does."""
    end = f"-- {secrets.token_hex(8)} --"
    report = engine.grade(
        slug,
        source + _added(slug, end),
        attempt=attempt,
        seed=seed,
        timeout=SECONDS,
        properties=(SHAPE_PROPERTY,),
        diagnose=False,
    )
    printed = report.attempt_output.split(end)[0].strip("\n")  # after it come the prints of calls with random inputs
    output = _first_lines(plain(printed))
    if report.outcome == "ungraded":
        because = (report.ungraded_because or "no reason given").replace(
            "while it was imported", "while it was imported, or in the example"
        )
        return Smoke(outcome="ungraded", shape=f"It does not run: {plain(because)}", output=output)
    if report.not_written:
        return Smoke(outcome="failed", shape="" if "not written yet" in output else "Not written yet.", output=output)
    shape = next(finding for finding in report.findings if finding.property == SHAPE_PROPERTY)
    if shape.outcome == "passed":
        matches = "The example: out is as expected." in output
        return Smoke(outcome="passed" if matches else "failed", shape="Shapes: right.", output=output)
    case = " ".join(f"{name}={value}" for name, value in (shape.case or {}).items())
    at = f" at {case}" if case else ""
    return Smoke(outcome="failed", shape=f"Shapes{at}: {plain(shape.message or shape.outcome)}", output=output)


def _added(slug: str, end: str) -> bytes:
    example = content.of_kata(slug).example
    template = stubs.templates().get_template("interview_smoke.py.j2")
    return template.render(code=repr(example.code), expected=repr(example.expected), end=repr(end)).encode()


def _first_lines(text: str) -> str:
    lines = text.splitlines()
    if len(lines) <= MOST_LINES:
        return text
    return "\n".join([*lines[: MOST_LINES - 1], f"… {len(lines) - MOST_LINES + 1} more lines"])
