"""The Report: everything one grading found, as plain values that every face renders and nothing else reads back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SCHEMA = 1

FindingOutcome = Literal["passed", "failed", "errored", "skipped"]
ReportOutcome = Literal["passed", "failed", "ungraded"]
Tier = Literal["core", "edge"]


@dataclass(frozen=True, kw_only=True)
class Example:
    """The smallest failing tensors, small enough to read: rows of numbers (2-D), with what the rows and columns are."""

    what: str  # the expression that was compared, e.g. "out[0, 1]"
    rows: str  # what a row is, e.g. "query"
    columns: str  # what a column is, e.g. "value feature"
    expected: list[list[float | None]]  # None where the number is not finite
    got: list[list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One property's outcome."""

    property: str
    claim: str
    tier: Tier
    outcome: FindingOutcome
    message: str | None  # what was seen, at one index; None when passed
    look_at: str | None  # where to look, never the fix
    case: dict[str, int | str] | None  # the smallest sizes at which it failed
    needs: list[str]
    example: Example | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class NamedMistake:
    """A mistake that was recognised in the attempt, with the failing numbers filled in."""

    id: str
    title: str
    explanation: str
    question: str  # what to ask oneself; never the code to paste
    line: int | None  # 1-based, None when the syntax tree does not show it
    source_line: str | None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One smallest set of mistakes whose output equals the attempt's on every probe."""

    mistakes: list[NamedMistake]


@dataclass(frozen=True, kw_only=True)
class Isolation:
    """What stood between the attempt and the machine, as probed."""

    tier: int
    landlock: int  # ABI version in force, 0 where none
    seccomp: bool
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class Report:
    """One grading. `passed` says that every core property holds."""

    kata: str
    attempt: str
    outcome: ReportOutcome
    seed: int
    findings: list[Finding]
    diagnosis: list[Diagnosis]
    ungraded_because: str | None
    attempt_output: str
    isolation: Isolation
    seconds: dict[str, float]
    versions: dict[str, str]
    pictures: list[Example] = field(default_factory=list)  # attention weights, read off the output, where they differ
    not_written: bool = False  # the attempt raises NotImplementedError everywhere: the untouched stub
    part: bool = False  # some of the properties were asked for, with what they need
    explained: bool = True  # False where the diagnosis does not account for all of the attempt's numbers
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def exit_code(self) -> int:
        return {"passed": 0, "failed": 1, "ungraded": 3}[self.outcome]

    def to_dict(self) -> dict[str, Any]:
        """The JSON report, `"schema": 1`: every key always there."""
        body = asdict(self)
        return {
            "schema": SCHEMA,
            "kata": body.pop("kata"),
            "attempt": body.pop("attempt"),
            "outcome": body.pop("outcome"),
            "passed": self.passed,
            **body,
        }

    @classmethod
    def from_dict(cls, body: dict[str, Any]) -> Report:
        """The Report that `to_dict` wrote. For the engine's own channel; never fed from an attempt."""
        rest = {key: value for key, value in body.items() if key not in ("schema", "passed")}
        rest["findings"] = [
            Finding(**{**finding, "example": Example(**finding["example"]) if finding["example"] else None})
            for finding in rest["findings"]
        ]
        rest["diagnosis"] = [
            Diagnosis(mistakes=[NamedMistake(**mistake) for mistake in found["mistakes"]])
            for found in rest["diagnosis"]
        ]
        rest["pictures"] = [Example(**picture) for picture in rest["pictures"]]
        rest["isolation"] = Isolation(**rest["isolation"])
        return cls(**rest)
