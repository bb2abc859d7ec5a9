"""What has happened in one `watch`: which kata, what was seen of its file, the last report and what flipped since."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attn_kata.catalog import Kata
from attn_kata.watch.files import Missing, Saved, Seen
from attn_kata.watch.grading import Done, Fault, Graded, Job

if TYPE_CHECKING:
    from attn_kata.report.model import Report


@dataclass(frozen=True, kw_only=True)
class Flips:
    """Properties whose outcome is another than in the report before: in the order of the kata."""

    now_hold: list[str] = field(default_factory=list)
    now_fail: list[str] = field(default_factory=list)


def flips(before: Report | None, after: Report) -> Flips:
    """What flipped from one report to the next. Skipped is neither: nothing is known of it then."""
    if before is None or not before.findings or not after.findings:
        return Flips()
    held = {finding.property: finding.outcome == "passed" for finding in before.findings}
    known = {finding.property for finding in before.findings if finding.outcome != "skipped"}
    return Flips(
        now_hold=[
            finding.property
            for finding in after.findings
            if finding.outcome == "passed" and not held.get(finding.property, True)
        ],
        now_fail=[
            finding.property
            for finding in after.findings
            if finding.outcome in ("failed", "errored")
            and (held.get(finding.property) or finding.property not in known)
        ],
    )


@dataclass(kw_only=True)
class WatchSession:
    """The state of one kata's turn. `job_for` and `take` are the only ways it changes from outside."""

    kata: Kata
    path: Path
    name: str
    started: float  # monotonic
    report: Report | None = None
    compared: Report | None = None  # the last report with findings: what an ungraded one in between does not hide
    flips: Flips = field(default_factory=Flips)
    fault: Exception | None = None
    missing: str | None = None
    grading: Job | None = None
    graded: bytes | None = None
    gradings: int = 0

    def job_for(self, seen: Seen) -> Job | None:
        """What to grade after the file was seen so; None where there is nothing new."""
        if isinstance(seen, Missing):
            self.missing = seen.why
            return None
        assert isinstance(seen, Saved)
        self.missing = None
        pending = self.grading.source if self.grading else self.graded
        if seen.source == pending:  # saved again as it was
            return None
        self.grading = Job(kata=self.kata.slug, name=self.name, source=seen.source)
        return self.grading

    def again(self) -> Job | None:
        """The same version once more."""
        if self.grading is None and self.graded is not None:
            self.grading = Job(kata=self.kata.slug, name=self.name, source=self.graded)
            return self.grading
        return None

    def take(self, done: Done) -> Report | None:
        """A grading came to its end; its report, where it is about what the file holds."""
        if done.job is not self.grading:
            return None
        self.grading, self.graded = None, done.job.source
        if isinstance(done, Fault):
            self.fault = done.problem
            return None
        assert isinstance(done, Graded)
        self.fault = None
        self.gradings += 1
        self.report = done.report
        self.flips = flips(self.compared, done.report)
        if done.report.findings:
            self.compared = done.report
        return done.report

    @property
    def passed(self) -> bool:
        """Whether the last report says so."""
        return self.report is not None and self.report.passed
