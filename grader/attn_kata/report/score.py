"""The score of a report, from 0 to 100, with its sum.

Where named mistakes explain everything that fails, each costs what the rubric says, however many properties it breaks. Where
something is not explained, the score is the share of the groups of properties that hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from attn_kata.report.model import NamedMistake, Report
from attn_kata.report.plain import one_line
from attn_kata.report.rubric import Rubric, default
from attn_kata.report.summary import is_left_out, is_ready_made

FULL = 100.0


@dataclass(frozen=True, kw_only=True)
class Term:
    """One line of a score's sum: what it is for, and its points."""

    what: str
    points: float

    def __str__(self) -> str:
        sign = "−" if self.points < 0 else "+"
        return f"{sign}{shown(abs(self.points))}  {self.what}"


@dataclass(frozen=True, kw_only=True)
class Score:
    """Points from 0 to 100. They are the sum of the terms."""

    points: float
    terms: tuple[Term, ...]

    def lines(self) -> list[str]:
        """The sum, line by line, and its result."""
        return [*map(str, self.terms), f"= {shown(self.points)} of 100"]


def shown(points: float) -> str:
    """Points with at most one digit after the point."""
    return f"{points:.1f}".removesuffix(".0")


def of(report: Report, rubric: Rubric | None = None) -> Score:
    """The score of a report."""
    rubric = rubric or default()
    if report.outcome == "passed":
        return _sum([Term(what="all core properties hold", points=FULL)])
    if report.outcome == "ungraded":
        return _sum([Term(what="it cannot run", points=0.0)])
    if report.not_written:
        return _sum([Term(what="nothing is written yet", points=0.0)])
    if any(is_ready_made(finding) for finding in report.findings if finding.tier == "core"):
        return _sum([Term(what="it calls something ready-made", points=rubric.ready_made)])
    if report.diagnosis and report.explained and not report.unexplained:
        return _by_mistakes(report, rubric)
    return _by_groups(report, rubric)


def _by_mistakes(report: Report, rubric: Rubric) -> Score:
    """100 less what each mistake takes. Where several sets explain the attempt, the one that takes least."""

    def taken(mistakes: list[NamedMistake]) -> float:
        return sum(rubric.takes(mistake.id) for mistake in mistakes)

    mistakes = min((found.mistakes for found in report.diagnosis), key=taken)
    terms = [
        Term(what="everything", points=FULL),
        *(
            Term(what=f"{one_line(mistake.title)} ({one_line(mistake.id)})", points=-rubric.takes(mistake.id))
            for mistake in mistakes
        ),
    ]
    below = taken(mistakes) - FULL
    if below > 0:
        terms.append(Term(what="no score is below 0", points=below))
    return _sum(terms)


def _by_groups(report: Report, rubric: Rubric) -> Score:
    """The share of the groups that hold, each by its weight."""
    outcomes: dict[str, list[bool]] = {group.name: [] for group in rubric.groups}
    for finding in report.findings:
        if finding.tier == "core" and not is_left_out(finding):
            outcomes[rubric.group_of(finding.property).name].append(finding.outcome == "passed")
    counted = [group for group in rubric.groups if outcomes[group.name] and group.weight]
    total = sum(group.weight for group in counted)
    terms, weight = [], 0.0
    for group in counted:
        held = outcomes[group.name]
        before = weight
        if all(held):
            weight += group.weight
        # Rounded along the sum, so that the terms add up to the rounded score.
        points = round(round(FULL * weight / total, 1) - round(FULL * before / total, 1), 1)
        said = "holds" if all(held) else f"{sum(held)} of {len(held)} properties hold"
        terms.append(Term(what=f"{one_line(group.title)}: {said}", points=points))
    return _sum(terms or [Term(what="no property counts", points=0.0)])


def _sum(terms: list[Term]) -> Score:
    return Score(points=round(sum(term.points for term in terms), 1), terms=tuple(terms))
