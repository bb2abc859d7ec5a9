"""The eight dimensions of the scorecard: each computed from measurements, as (score, evidence, rule)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attn_kata.interview import content, moments
from attn_kata.interview.review import Earlier, Review, Taken
from attn_kata.report.model import Finding, Report
from attn_kata.rounds import hunt

Judged = tuple[int, list[str], str]

# Which properties are about gradients and numbers, by their names.
_NUMERIC = re.compile(r"grad|float|half|precision|dtype|large|finite|stable|nan|overflow")
_LEAST_RUNS = 2
_MOST_IDLE_QUESTIONS = 1
_MOST_NAMES = 6  # of the properties in one line of evidence; the reports and the timeline have them all


def clarification(review: Review) -> Judged:
    """Which of the questions that matter were asked."""
    rule = (
        "4: you asked every question that matters, and at most one that does not; 3: two thirds of those that matter; "
        "2: at least one; 1: none. One point less if you asked more questions that do not matter than questions that do."
    )
    session = review.session
    asked = matter = wasted = 0
    evidence = []
    for stage in [place for place in session.begun or (0,) if session.stages[place].kind in ("write", "grow")]:
        kata = session.stages[stage].kata
        for number, question in enumerate(content.of_kata(kata).questions, 1):
            was_asked = (stage, number) in session.asked
            matter += question.matters
            asked += was_asked and question.matters
            wasted += was_asked and not question.matters
            if question.matters and not was_asked:
                evidence.append(f"{kata}: not asked: {question.settles}")
    evidence.insert(0, f"you asked {asked} of the {matter} questions that matter, and {wasted} that do not matter")
    evidence += ["you saw the list of questions"] if session.listed else []
    if asked == matter:
        score = 4 if wasted <= _MOST_IDLE_QUESTIONS else 3
    else:
        score = 3 if asked * 3 >= matter * 2 else 2 if asked else 1
    return max(1, score - (wasted > asked)), evidence, rule


def correctness(review: Review) -> Judged:
    """The hidden properties of the taken code, core first."""
    rule = (
        "4: every core property holds in every stage, and half of the edge properties; 3: at most one core property "
        "does not hold; 2: half of them hold; 1: fewer. In a stage that you did not reach, no property holds. Where a file "
        "grew, the properties of its earlier parts are asked again."
    )
    evidence, held, core, edge_held, edge = [], 0, 0, 0, 0
    for one in review.taken:
        own = [finding for finding in findings_of(one) if finding.tier == "core"]
        beyond = [finding for finding in findings_of(one) if finding.tier == "edge"]
        good, extra = _held(own), _held(beyond)
        why = f" ({one.report.ungraded_because})" if one.report and one.report.ungraded_because else ""
        evidence.append(
            f"{one.kata}: {good} of {len(own)} core properties, {extra} of {len(beyond)} edge properties{why}"
        )
        evidence += [f"{one.kata}: {fails}" for fails in _fails(own)]
        evidence += [hunt.note(one.report.hunt)] if one.report and one.report.hunt else []
        held, core, edge_held, edge = held + good, core + len(own), edge_held + extra, edge + len(beyond)
        again = [finding for part in one.earlier for finding in core_of(part.report)]
        evidence += [asked_again(one.kata, part) for part in one.earlier]
        held, core = held + _held(again), core + len(again)
    stages = len([one for one in review.session.stages if one.written])
    missing = stages - sum(1 for one in review.taken if findings_of(one))
    evidence += [f"{missing} stage{'s' if missing > 1 else ''} without anything to grade"] if missing else []
    if not missing and core and held == core:
        return (4 if 2 * edge_held >= edge else 3), evidence, rule
    if not missing and core and held == core - 1:
        return 3, evidence, rule
    share = (held / core if core else 0.0) * (stages - missing) / (stages or 1)
    return (2 if share >= 0.5 else 1), evidence, rule


def numerics(review: Review) -> Judged:
    """Gradients, dtypes, large scores, half precision: core and edge alike."""
    rule = (
        "4: all properties about gradients and numbers hold; 3: three quarters; 2: half; 1: fewer, or none were graded."
    )
    every = [finding for one in review.taken for finding in findings_of(one) if _NUMERIC.search(finding.property)]
    held = _held(every)
    evidence = [f"properties that hold: {held} of {len(every)}"]
    evidence += _fails(every)
    return _by_share(held, len(every), 1.0, 0.75, 0.5), evidence, rule


def speed(review: Review) -> Judged:
    """The time used, and the times of the first run, the first property and all core properties."""
    rule = (
        "4: every core property held within two thirds of the time; 3: within the time; 2: half of them held at the "
        "end; 1: fewer, or the file was late."
    )
    session = review.session
    share = session.used / session.seconds if session.seconds else 1.0
    evidence = [f"{moments.clock_text(session.used)} of {moments.clock_text(session.seconds)} used ({share:.0%})"]
    for says, wanted in (
        ("first run", _first_run(review)),
        ("first property", _first_held(review)),
        ("all core properties", _all_held(review)),
    ):
        evidence.append(f"{says}: {'never' if wanted is None else 'after ' + moments.clock_text(wanted)}")
    done = _all_held(review)
    if any(one.how == "late" for one in review.taken):
        return 1, [*evidence, "saved after the end"], rule
    if done is not None:
        return (4 if done <= session.seconds * 2 / 3 else 3), evidence, rule
    own = [finding for one in review.taken for finding in findings_of(one) if finding.tier == "core"]
    reached = len([one for one in review.taken if findings_of(one)]) == len(
        [one for one in session.stages if one.written]
    )
    return (2 if reached and own and 2 * _held(own) >= len(own) else 1), evidence, rule


def testing(review: Review) -> Judged:
    """Runs before handing in, and whether a property broke again."""
    rule = (
        "4: you ran every stage at least twice, you ran the final code, and no property that held before is broken in "
        "it; 3: you ran the final code; 2: you ran some version; 1: you ran nothing."
    )
    session = review.session
    runs = [event for event in session.events if event.kind == "ran"]
    counts = {stage: sum(1 for event in runs if event.stage == stage) for stage in session.begun}
    last_ran = all(
        any(event.source == digest and event.stage == stage for event in runs)
        for stage, digest in session.finals.items()
    )
    broke = [flip.property for point in review.points for flip in point.flips if flip.how == "broke"]
    still = [name for one in review.taken for name in _once_held(review, one) & _failing(one)]
    evidence = [
        f"{session.stages[stage].kata}: {count} run{'' if count == 1 else 's'}" for stage, count in counts.items()
    ]
    evidence.append("you ran the final code" if last_ran else "you did not run the final code")
    evidence += [f"properties that broke on the way: {named(sorted(set(broke)))}"] if broke else []
    if runs and last_ran and session.finals:
        tested = not still and all(count >= _LEAST_RUNS for count in counts.values())
        return (4 if tested else 3), evidence, rule
    return (2 if runs else 1), evidence, rule


def code_quality(review: Review) -> Judged:
    """The findings of pyflakes in the taken code, and what was left over in it."""
    rule = (
        "Findings of pyflakes, debug prints, commented-out code, one-letter names: 4: none; 3: one or two; 2: up to five; "
        "1: more, not Python, or nothing written."
    )
    if not any(one.report is not None and not one.report.not_written for one in review.taken):
        return 1, ["you wrote nothing"], rule
    evidence, count = [], 0
    for one in review.taken:
        if one.lint is None:
            return 1, [f"{one.kata}: the linter cannot read it"], rule
        count += len(one.lint)
        evidence += [f"{one.kata}, line {finding.line}: {finding.says}" for finding in one.lint[:_MOST_NAMES]]
        evidence += [f"{one.kata}: {len(one.lint) - _MOST_NAMES} more"] if len(one.lint) > _MOST_NAMES else []
    score = 4 if count == 0 else 3 if count <= 2 else 2 if count <= 5 else 1
    return score, evidence or ["no findings"], rule


def depth(review: Review) -> Judged:
    """The graded follow-up questions."""
    rule = (
        "Right answers to the graded questions (numbers, choices, reviews): 4: all; 3: two thirds; 2: at least one; "
        "1: none. A review is right when every mistake is marked and nothing else."
    )
    session = review.session
    graded = [place for place, question in enumerate(session.follow_ups, 1) if question["kind"] != "free"]
    right = sum(1 for place in graded if session.answers.get(place, {}).get("right"))
    unanswered = sum(1 for place in graded if place not in session.answers)
    evidence = [f"{right} of {len(graded)} right" + (f", {unanswered} not answered" if unanswered else "")]
    evidence += [
        f"review of {question['kata']}: {len(seen['found'])} mistakes found, {len(seen['missed'])} missed, "
        f"{len(seen['wrong'])} marks at no mistake"
        for place, question in enumerate(session.follow_ups, 1)
        for seen in [session.answers.get(place, {}).get("reviewed")]
        if seen
    ]
    score = 1 if not right else 4 if right == len(graded) else 3 if right * 3 >= len(graded) * 2 else 2
    return score, evidence, rule


def independence(review: Review, *, hints: int, references: int) -> Judged:
    """Help during the session."""
    rule = "4: a mock session; 3: coached, without a hint; 2: with hints; 1: the reference was shown."
    hints += len(review.session.hints)
    evidence = [f"{review.session.mode}, {hints} hint{'' if hints == 1 else 's'}"]
    evidence += ["the reference was shown"] if references else []
    score = 1 if references else 2 if hints else 3 if review.session.mode == "coached" else 4
    return score, evidence, rule


def self_reported(review: Review) -> Iterable[str]:
    """The free answers, as the candidate ticked them. They do not count."""
    session = review.session
    for place, question in enumerate(session.follow_ups, 1):
        if question["kind"] == "free":
            ticked, of = session.ticks.get(place), len(question["points"])
            what = f"{len(ticked)} of {of} points ticked" if ticked is not None else "not ticked"
            what = "not answered" if place not in session.answers else what
            yield f"Question {place} ({question['kata']}): {what}"


def asked_again(kata: str, part: Earlier) -> str:
    """What of an earlier part still holds in the final version of the file."""
    core = core_of(part.report)
    if not core:
        return f"{part.kata}, asked again with {kata}: not graded"
    lost = sorted(finding.property for finding in core if finding.outcome != "passed")
    broken = f"; no longer: {named(lost)}" if lost else ""
    return f"{part.kata}, asked again with {kata}: {_held(core)} of {len(core)} core properties{broken}"


def core_of(report: Report | None) -> list[Finding]:
    return [finding for finding in report.findings if finding.tier == "core"] if report is not None else []


def findings_of(one: Taken) -> list[Finding]:
    return one.report.findings if one.report is not None else []


def _fails(findings: Sequence[Finding]) -> list[str]:
    fails = [finding.property for finding in findings if finding.outcome in ("failed", "errored")]
    untried = [finding.property for finding in findings if finding.outcome == "skipped"]
    said = [f"fails {named(fails)}"] if fails else []
    return [*said, f"not tried, and counted as not holding: {named(untried)}"] if untried else said


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown


def _held(findings: Iterable[Finding]) -> int:
    return sum(1 for finding in findings if finding.outcome == "passed")


def _failing(one: Taken) -> set[str]:
    """What was tried and does not hold."""
    return {finding.property for finding in findings_of(one) if finding.outcome in ("failed", "errored")}


def _once_held(review: Review, one: Taken) -> set[str]:
    return {
        flip.property
        for point in review.points
        if point.stage == one.stage
        for flip in point.flips
        if flip.how != "broke"
    }


def _first_run(review: Review) -> float | None:
    return next((point.at for point in review.points if point.kind == "ran"), None)


def _first_held(review: Review) -> float | None:
    return next((point.at for point in review.points if any(flip.how == "holds" for flip in point.flips)), None)


def _all_held(review: Review) -> float | None:
    """When the last core property of the last stage held; None if not all hold at the end."""
    session, found = review.session, 0.0
    for stage in [place for place, one in enumerate(session.stages) if one.written]:
        own = [point for point in review.points if point.stage == stage and point.core is not None]
        if not own or own[-1].held != own[-1].core or session.finals.get(stage) != own[-1].version:
            return None
        since = own[-1].at
        for point in reversed(own):
            if point.held != point.core:
                break
            since = point.at
        found = max(found, since)
    return found


def _by_share(held: int, of: int, four: float, three: float, two: float) -> int:
    share = held / of if of else 0.0
    return 4 if share >= four else 3 if share >= three else 2 if share >= two else 1
