"""What to practise after a session: told in the review, and kept for `attn-kata status`."""

from __future__ import annotations

from collections.abc import Iterable

from attn_kata.interview import dimensions
from attn_kata.interview.review import Review
from attn_kata.rounds.record import Record


def lines(review: Review) -> Iterable[str]:
    """What to practise next, each line with its command; the code first."""
    session = review.session
    for one in review.taken:
        named = [
            mistake.title for found in (one.report.diagnosis if one.report else [])[:1] for mistake in found.mistakes
        ]
        fails = [
            finding.property
            for finding in dimensions.findings_of(one)
            if finding.tier == "core" and finding.outcome != "passed"
        ]
        what = "; ".join(named) or dimensions.named(fails) or (one.report.ungraded_because if one.report else "")
        if one.report is not None and not one.report.passed:
            command = "hunt" if one.report.hunt else "start"
            yield f"{one.kata}: {what or 'not graded'}. attn-kata {command} {one.kata}"
        for part in one.earlier:
            lost = [finding.property for finding in dimensions.core_of(part.report) if finding.outcome != "passed"]
            if lost:
                yield f"{part.kata}, when the file grows: {dimensions.named(lost)}. attn-kata start {part.kata}"
    wrong = [one for place, one in enumerate(session.follow_ups, 1) if not session.answers.get(place, {}).get("right")]
    for kind, command, what in (("numeric", "napkin", "numbers without code"), ("review", "review", "reading code")):
        for slug in dict.fromkeys(one["kata"] for one in wrong if one["kind"] == kind):
            yield f"{slug}: {what}. attn-kata {command} {slug}"


def keep(reviewed: Review, record: Record) -> None:
    """Keep how hunts, reviews and numbers went, for what to practise next."""
    session = reviewed.session
    for one in reviewed.taken:
        if one.report is not None and one.report.hunt is not None:
            record.hunt_went(one.kata, one.report.hunt)
    for stage, one_round in enumerate(session.stages):
        asked = [(place, one) for place, one in enumerate(session.follow_ups, 1) if one.get("stage") == stage]
        if one_round.kind in ("napkin", "review") and asked:
            wrong = [one["ask"] for place, one in asked if not session.answers.get(place, {}).get("right")]
            record.went(one_round.kata, "napkin" if one_round.kind == "napkin" else "review", wrong)
