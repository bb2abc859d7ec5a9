"""The graded results of a session, for the scorecard and the pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attn_kata import catalog, workspace
from attn_kata.interview import moments, quality, timeline
from attn_kata.interview.quality import LintFinding
from attn_kata.interview.rounds import chain
from attn_kata.interview.session import Event, Session
from attn_kata.interview.store import Store
from attn_kata.interview.timeline import Gap, Point
from attn_kata.report.model import Report
from attn_kata.rounds import hunt

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

_CODE = ("import ", "from ", "def ", "class ", "@")
FINAL_SECONDS, VERSION_SECONDS = 60.0, 15.0  # for grading a final version, and an earlier one
MOST_VERSIONS = 40  # graded for the timeline of one stage; of more, an even selection with the last one


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """The properties of an earlier part of a file that grew, asked again of its final version."""

    kata: str
    report: Report | None


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The final version of a stage. `report` and `lint` are None when nothing was graded."""

    stage: int
    kata: str
    how: str  # "submitted", or how it was taken at the end: "on the disk", "late", …
    source: str
    report: Report | None
    lint: tuple[LintFinding, ...] | None
    reference: str
    diff: str  # from the attempt to the reference
    earlier: tuple[Earlier, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Review:
    """One session, ready for the scorecard and the pages."""

    session: Session
    taken: tuple[Taken, ...]
    points: tuple[Point, ...]
    gaps: tuple[Gap, ...]


def grade(
    store: Store, session: Session, engine: Engine, tell: Callable[[int, int], None] = lambda done, of: None
) -> None:
    """Grade every version that counts and was not graded yet, the final ones first; each report is kept at once.

    `tell` gets the number of graded versions and the total. Raises EngineFault, NotKept.
    """
    done = store.reports(session.id)
    pending = [one for one in versions(session) if one not in done]
    for count, (stage, digest) in enumerate(pending):
        tell(count, len(pending))
        slug = session.stages[stage].kata
        final = digest in session.finals.values()
        report = engine.grade(
            slug,
            store.source(session.id, digest),
            attempt=f"{slug}.py",
            seed=session.seed,
            timeout=FINAL_SECONDS if final else VERSION_SECONDS,
            diagnose=final,
        )
        store.keep_report(session.id, stage, digest, report.to_dict())
    tell(len(pending), len(pending))


def versions(session: Session) -> list[tuple[int, str]]:
    """(stage, hash) of every version to grade: the final ones, then those that were run or saved.

    The final version of a file that grew is graded for its earlier stages as well.
    """
    finals = [
        (part, digest)
        for stage, digest in session.finals.items()
        if digest
        for part in reversed(chain(session.stages, stage))
    ]
    seen: dict[tuple[int, str], None] = dict.fromkeys(finals)
    for stage in session.begun:
        events = [event for event in session.events if event.stage == stage and event.source]
        every = list(dict.fromkeys((stage, event.source) for event in events if event.source))
        step = max(1, -(-len(every) // MOST_VERSIONS))
        ran = [(stage, event.source) for event in events if event.kind == "ran" and event.source]
        seen.update(dict.fromkeys(one for one in (every[::step] if step > 1 else every)))
        seen.update(dict.fromkeys(ran[-MOST_VERSIONS:]))
    return list(seen)


def gather(store: Store, session: Session) -> Review:
    """The review of a session, with the gradings so far."""
    reports = store.reports(session.id)
    return Review(
        session=session,
        taken=tuple(_taken(store, session, stage, digest) for stage, digest in session.finals.items() if digest),
        points=tuple(timeline.points(session, reports, lambda digest: store.source(session.id, digest))),
        gaps=tuple(timeline.gaps(session)),
    )


def graded(store: Store, session: Session) -> bool:
    """Whether every version is graded."""
    return set(versions(session)) <= set(store.reports(session.id))


def _taken(store: Store, session: Session, stage: int, digest: str) -> Taken:
    kata = catalog.find(session.stages[stage].kata)
    reports = store.reports(session.id)
    body = reports.get((stage, digest))
    source = store.source(session.id, digest)
    how = next((str(event.data.get("how", "submitted")) for event in _ends(session, stage)), "submitted")
    reference = workspace.read(Path(kata.solution))
    attempt_text, reference_text = timeline.as_text(source), timeline.as_text(reference)
    report = _report(body) if body else None
    if report is not None and session.stages[stage].kind == "hunt":
        report = _hunted(session, stage, source, report)
    return Taken(
        stage=stage,
        kata=kata.slug,
        how=how,
        source=attempt_text,
        report=report,
        lint=quality.lint(source),
        reference=reference_text,
        diff=timeline.difference(_essence(attempt_text), _essence(reference_text)),
        earlier=tuple(
            Earlier(kata=session.stages[part].kata, report=_report(kept) if kept else None)
            for part in chain(session.stages, stage)[:-1]
            for kept in [reports.get((part, digest))]
        ),
    )


def _hunted(session: Session, stage: int, source: bytes, report: Report) -> Report:
    """The report of a hunt's file, with what became of its mistakes."""
    began = next(event for event in session.events if event.stage == stage and event.kind in ("began", "advanced"))
    ended = next(_ends(session, stage), began)
    minutes = moments.passed(began.moment, ended.moment) / 60
    result = hunt.judge(session.spoiled[stage], source, report, minutes=minutes)
    if result is None:
        return report
    return replace(report, hunt=result, notes=[*report.notes, hunt.note(result)])


def _essence(code: str) -> str:
    """The code without the text at the top and without the parts that only run as a script."""
    lines = code.splitlines()
    first = next((place for place, line in enumerate(lines) if line.startswith(_CODE)), 0)
    kept, inside = [], False
    for line in lines[first:]:
        inside = line.startswith("if __name__") or (inside and (not line or line[0].isspace()))
        if not inside:
            kept.append(line)
    return "\n".join(kept).rstrip()


def _report(body: dict[str, Any]) -> Report | None:
    try:
        return Report.from_dict(body)
    except (KeyError, TypeError):  # written by a version of attn-kata with different reports
        return None


def _ends(session: Session, stage: int) -> Iterator[Event]:
    return (event for event in session.events if event.stage == stage and event.kind in ("submitted", "time_up"))
