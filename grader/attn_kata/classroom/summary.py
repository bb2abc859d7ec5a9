"""What a class shows as a whole: a row for each student, the mistakes by frequency, the properties, the scores."""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from attn_kata.classroom import mistakes
from attn_kata.classroom.store import Kept, RunInfo
from attn_kata.report import score
from attn_kata.report.model import FindingOutcome, NamedMistake, Report, Tier
from attn_kata.report.plain import one_line
from attn_kata.report.rubric import Rubric
from attn_kata.report.score import Score
from attn_kata.report.summary import verdict

CANNOT_RUN = "CANNOT RUN"  # 0 points: what was handed in is no Python, defines nothing that is asked, or crashes
NOT_GRADED = "NOT GRADED"  # no points: it is not known what was handed in, or the grading did not come to an end
WAITING = "It is not graded yet: the run was stopped before. Give the same command again."
OUT_OF_TIME = "the grading ran out of time"
BINS = 10  # of the histogram, each 10 points wide; 100 is in the last


@dataclass(frozen=True, kw_only=True)
class Row:
    """One student. `score` is None, and `because` says why, where nothing was graded."""

    student: str
    verdict: str
    outcome: str
    score: Score | None
    mistakes: tuple[str, ...]  # of the first smallest set
    core_held: int
    core: int
    edge_held: int
    edge: int
    seconds: float
    file: str
    sha256: str
    because: str
    page: str  # the name of the student's pages, without a folder
    outcomes: dict[str, FindingOutcome]


@dataclass(frozen=True, kw_only=True)
class MistakeCount:
    """A mistake, how many students made it, and where one of them did."""

    id: str
    title: str
    count: int
    student: str
    page: str
    place: str
    source_line: str


@dataclass(frozen=True, kw_only=True)
class PropertyCount:
    """A property, and how many of the graded students it held for, failed for, or was not tried for."""

    name: str
    claim: str
    tier: Tier
    held: int
    failed: int
    skipped: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A class. `mistakes` begin with the most frequent one, `properties` are in the order of the hidden tests."""

    kata: str
    seed: int
    submissions: str
    versions: dict[str, str]
    rows: list[Row]
    mistakes: list[MistakeCount]
    properties: list[PropertyCount]
    left_out: list[str]

    def verdicts(self) -> dict[str, int]:
        """How many students have each verdict, the frequent ones first."""
        return dict(Counter(row.verdict for row in self.rows).most_common())

    def scores(self) -> list[float]:
        """Every score, in the order of the rows."""
        return [row.score.points for row in self.rows if row.score is not None]

    def histogram(self) -> list[int]:
        """How many scores are in 0–9, 10–19, …, 90–100."""
        counted = [0] * BINS
        for points in self.scores():
            counted[min(BINS - 1, int(points) // (100 // BINS))] += 1
        return counted

    def mean(self) -> float | None:
        return statistics.fmean(self.scores()) if self.scores() else None

    def median(self) -> float | None:
        return statistics.median(self.scores()) if self.scores() else None

    def with_outcome(self, outcome: str) -> list[Row]:
        """The students with this outcome: `ungraded` cannot run, and `missing` has no report."""
        return [row for row in self.rows if row.outcome == outcome]


def word(report: Report | None) -> str:
    """The verdict on a student in a word or two; None is a student without a report."""
    if report is None:
        return NOT_GRADED
    return CANNOT_RUN if report.outcome == "ungraded" else verdict(report)


class Tally:
    """Counts one student after the other; it keeps no report."""

    def __init__(self, info: RunInfo, rubric: Rubric | None, left_out: list[str]) -> None:
        self._info, self._rubric, self._left_out = info, rubric, left_out
        self._rows: list[Row] = []
        self._mistakes: Counter[str] = Counter()
        self._examples: dict[str, MistakeCount] = {}
        self._properties: dict[str, tuple[str, Tier]] = {}
        self._outcomes: dict[str, Counter[str]] = {}
        self._versions: dict[str, str] = {}

    def add(self, kept: Kept, page: str) -> Row:
        """Count one student."""
        report = None if kept.report is None else mistakes.in_our_words(kept.report)
        row = _missing(kept, page) if report is None else self._graded(kept, report, page)
        self._rows.append(row)
        return row

    def _graded(self, kept: Kept, report: Report, page: str) -> Row:
        self._versions = self._versions or report.versions
        row = _row(kept, report, page, score.of(report, self._rubric))
        for finding in report.findings:
            self._properties.setdefault(finding.property, (finding.claim, finding.tier))
            self._outcomes.setdefault(finding.property, Counter())[finding.outcome] += 1
        for mistake in report.diagnosis[0].mistakes if report.diagnosis else []:
            self._mistakes[mistake.id] += 1
            self._examples.setdefault(mistake.id, _example(mistake, row))
        return row

    def summary(self) -> Summary:
        """Everything that was counted."""
        return Summary(
            kata=self._info.kata,
            seed=self._info.seed,
            submissions=self._info.submissions,
            versions=self._versions,
            rows=self._rows,
            mistakes=list(self._most_frequent()),
            properties=[
                PropertyCount(
                    name=name,
                    claim=claim,
                    tier=tier,
                    held=self._outcomes[name]["passed"],
                    failed=self._outcomes[name]["failed"] + self._outcomes[name]["errored"],
                    skipped=self._outcomes[name]["skipped"],
                )
                for name, (claim, tier) in self._properties.items()
            ],
            left_out=self._left_out,
        )

    def _most_frequent(self) -> Iterator[MistakeCount]:
        for id, count in sorted(self._mistakes.items(), key=lambda pair: (-pair[1], pair[0])):
            example = self._examples[id]
            yield MistakeCount(
                id=id,
                title=example.title,
                count=count,
                student=example.student,
                page=example.page,
                place=example.place,
                source_line=example.source_line,
            )


def _row(kept: Kept, report: Report, page: str, points: Score) -> Row:
    core = [finding.outcome for finding in report.findings if finding.tier == "core"]
    edge = [finding.outcome for finding in report.findings if finding.tier == "edge"]
    first = report.diagnosis[0].mistakes if report.diagnosis else []
    return Row(
        student=kept.listed.name,
        verdict=word(report),
        outcome=report.outcome,
        score=points,
        mistakes=tuple(one_line(mistake.id) for mistake in first),
        core_held=core.count("passed"),
        core=len(core),
        edge_held=edge.count("passed"),
        edge=len(edge),
        seconds=report.seconds.get("total", 0.0),
        file=kept.listed.file,
        sha256=kept.listed.sha256,
        because=one_line(report.ungraded_because or _late(report), most=300),
        page=page,
        outcomes={
            sys.intern(finding.property): finding.outcome for finding in report.findings
        },  # once for all students
    )


def _late(report: Report) -> str:
    """That the time was too short, or "": on a busy machine a right attempt fails for this alone."""
    messages = [finding.message or "" for finding in report.findings if finding.outcome in ("errored", "skipped")]
    late = any(message.removeprefix("not tried: ").startswith(OUT_OF_TIME) for message in messages)
    return "Out of time: give more with --timeout SECONDS." if late and report.outcome == "failed" else ""


def _missing(kept: Kept, page: str) -> Row:
    return Row(
        student=kept.listed.name,
        verdict=word(None),
        outcome="missing",
        score=None,
        mistakes=(),
        core_held=0,
        core=0,
        edge_held=0,
        edge=0,
        seconds=0.0,
        file=kept.listed.file,
        sha256=kept.listed.sha256,
        because=one_line(kept.listed.problem or kept.fault or WAITING, most=500),
        page=page,
        outcomes={},
    )


def _example(mistake: NamedMistake, row: Row) -> MistakeCount:
    place = mistake.place or (f"line {mistake.line}" if mistake.line is not None else "")
    return MistakeCount(
        id=one_line(mistake.id),
        title=one_line(mistake.title),
        count=0,
        student=row.student,
        page=row.page,
        place=place,
        source_line=one_line(mistake.source_line or "", most=160),
    )
