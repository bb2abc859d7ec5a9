"""The Report: everything that one grading found, as plain values. Every output format is made from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SCHEMA = 1

FindingOutcome = Literal["passed", "failed", "errored", "skipped"]
ReportOutcome = Literal["passed", "failed", "ungraded"]
Tier = Literal["core", "edge"]


@dataclass(frozen=True, kw_only=True)
class Example:
    """The smallest failing tensors as rows of numbers (2-D), with the meaning of rows and columns."""

    what: str  # the expression that was compared, e.g. "out[0, 1]"
    rows: str  # the meaning of a row, e.g. "query"
    columns: str  # the meaning of a column, e.g. "value feature"
    expected: list[list[float | None]]  # None where the number is not finite
    got: list[list[float | None]]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Lines of the graded source that come from one cell of a notebook."""

    name: str  # "cell 3"; "" for the cell that was graded by itself
    first: int  # 1-based lines of the source, both inclusive
    last: int
    starts_at: int  # the number of the first of them in the cell itself

    def place(self, line: int) -> str:
        """A line of the source as a reader of the notebook finds it: `cell 3, line 4`."""
        within = f"line {line - self.first + self.starts_at}"
        return f"{self.name}, {within}" if self.name else within


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One property's outcome."""

    property: str
    claim: str
    tier: Tier
    outcome: FindingOutcome
    message: str | None  # the observed numbers at one index; None when passed
    look_at: str | None  # where to look, never the fix
    case: dict[str, int | str] | None  # the smallest sizes that fail
    needs: list[str]
    example: Example | None
    seconds: float
    line: int | None = None  # the attempt's own line that raised, 1-based
    place: str | None = None  # where that line is in a notebook: "cell 3, line 4"


@dataclass(frozen=True, kw_only=True)
class NamedMistake:
    """A mistake found in the attempt, with the failing numbers filled in."""

    id: str
    title: str
    explanation: str
    question: str  # a question to ask yourself; never code to paste
    line: int | None  # 1-based; None when the syntax tree does not show the line
    source_line: str | None
    place: str | None = None  # where the line is in a notebook: "cell 3, line 4"


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One smallest set of mistakes whose output equals the attempt's on every probe."""

    mistakes: list[NamedMistake]


@dataclass(frozen=True, kw_only=True)
class Isolation:
    """The isolation of the attempt from the machine, as measured."""

    tier: int
    landlock: int  # ABI version in use, 0 for none
    seccomp: bool
    notes: list[str]


@dataclass(frozen=True, kw_only=True)
class HuntResult:
    """What became of the mistakes of a bug hunt, by id."""

    mended: list[str]
    left: list[str]
    new: list[str]
    unclear: list[str]  # the grading does not tell whether these are mended
    other: list[str]  # core properties that fail, where no known mistake explains them
    minutes: float  # since the hunt was written
    in_time: bool | None  # None for a hunt without a limit

    @property
    def done(self) -> bool:
        """Whether all is mended and nothing is newly wrong."""
        return not (self.left or self.new or self.unclear or self.other)


@dataclass(frozen=True, kw_only=True)
class Report:
    """One grading. `passed` means that every core property holds."""

    kata: str
    attempt: str
    outcome: ReportOutcome
    seed: int
    findings: list[Finding]
    diagnosis: list[Diagnosis]
    ungraded_because: str | None  # why nothing was graded; of code that fails by what its lines show, why nothing else
    attempt_output: str
    isolation: Isolation
    seconds: dict[str, float]
    versions: dict[str, str]
    pictures: list[Example] = field(
        default_factory=list
    )  # attention weights computed from the output, when they differ
    not_written: bool = False  # everything raises NotImplementedError: the unchanged stub
    part: bool = False  # only some properties were asked for, with those they need
    hunt: HuntResult | None = None  # for the file of a bug hunt
    explained: bool = True  # False when the diagnosis does not explain all of the attempt's numbers
    notes: list[str] = field(default_factory=list)
    stopped_by: str | None = None  # the exception that ended the file after its definitions, which are graded
    reproduced: bool = True  # False when the mistakes were seen in the source or an exception, and change no number
    unexplained: list[str] = field(default_factory=list)  # properties that fail for another reason than the diagnosis
    cells: list[Cell] = field(default_factory=list)  # of a notebook: which lines of its source are from which cell
    reading: dict[str, Any] | None = None  # how code by other names was understood; None for the contract's own names

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def was_tested(self) -> bool:
        """Whether hidden tests decided: not of what is ungraded, nor of what fails without a reading."""
        return self.ungraded_because is None

    @property
    def says_why(self) -> bool:
        """Whether it passed, or a known mistake or a ready-made attention is why it did not."""
        failed = [one.property for one in self.findings if one.tier == "core" and one.outcome == "failed"]
        return self.passed or bool(self.diagnosis) or "from_scratch" in failed

    @property
    def exit_code(self) -> int:
        return {"passed": 0, "failed": 1, "ungraded": 3}[self.outcome]

    def to_dict(self) -> dict[str, Any]:
        """The JSON report, `"schema": 1`: every key is always present."""
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
        """The Report that `to_dict` wrote. For the engine's own channel only, never for data from an attempt."""
        rest = {key: value for key, value in body.items() if key not in ("schema", "passed")}
        rest["hunt"] = HuntResult(**rest["hunt"]) if rest.get("hunt") else None
        rest["findings"] = [
            Finding(**{**finding, "example": Example(**finding["example"]) if finding["example"] else None})
            for finding in rest["findings"]
        ]
        rest["diagnosis"] = [
            Diagnosis(mistakes=[NamedMistake(**mistake) for mistake in found["mistakes"]])
            for found in rest["diagnosis"]
        ]
        rest["pictures"] = [Example(**picture) for picture in rest["pictures"]]
        rest["cells"] = [Cell(**cell) for cell in rest["cells"]]
        rest["isolation"] = Isolation(**rest["isolation"])
        return cls(**rest)
