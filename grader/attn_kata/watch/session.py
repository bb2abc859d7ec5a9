"""The state of one `watch`: the kata, the state of its file, the last report and what changed since the one before."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attn_kata import notebooks
from attn_kata.catalog import Kata
from attn_kata.sources import Source
from attn_kata.watch.files import Missing, Saved, Seen
from attn_kata.watch.grading import Done, Fault, Graded, Job

if TYPE_CHECKING:
    from attn_kata.report.model import Report


@dataclass(frozen=True, kw_only=True)
class Flips:
    """Properties whose outcome changed since the last report, in the order of the kata."""

    now_hold: list[str] = field(default_factory=list)
    now_fail: list[str] = field(default_factory=list)


def flips(before: Report | None, after: Report) -> Flips:
    """The changes from one report to the next. A skipped property counts as neither: its outcome is unknown."""
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
    """The state while one kata is watched. Only `job_for`, `again` and `take` change it."""

    kata: Kata
    path: Path
    name: str
    started: float  # monotonic
    report: Report | None = None
    compared: Report | None = None  # the last report with findings; an ungraded report in between does not replace it
    flips: Flips = field(default_factory=Flips)
    fault: Exception | None = None
    missing: str | None = None
    grading: Job | None = None
    graded: Source | None = None
    gradings: int = 0

    def job_for(self, seen: Seen) -> Job | None:
        """The job for the file in this state; None when nothing is new."""
        if isinstance(seen, Missing):
            self.missing = seen.why
            return None
        assert isinstance(seen, Saved)
        self.missing = None
        pending = self.grading.source if self.grading else self.graded
        source = notebooks.of_kata(seen.source, self.kata)
        if source == pending:  # saved again without a change
            return None
        self.grading = Job(kata=self.kata.slug, name=self.name, source=source)
        return self.grading

    def again(self) -> Job | None:
        """The same version once more."""
        if self.grading is None and self.graded is not None:
            self.grading = Job(kata=self.kata.slug, name=self.name, source=self.graded)
            return self.grading
        return None

    def take(self, done: Done) -> Report | None:
        """Take in a finished grading. Its report, if it is about the latest job; else None."""
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
        """Whether the last report is a pass."""
        return self.report is not None and self.report.passed
