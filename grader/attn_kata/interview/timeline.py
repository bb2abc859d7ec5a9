"""The timeline of a session: its events, the properties that held at each, the changes, the code and its diffs."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attn_kata.interview import moments
from attn_kata.interview.rounds import chain
from attn_kata.interview.session import Event, Session
from attn_kata.report.plain import one_line, plain

IDLE_SECONDS = 120.0

# Events that show activity of the candidate. Announcements and the end happen without one.
_ACTIVE = (
    "briefed",
    "asked",
    "began",
    "saved",
    "ran",
    "submitted",
    "advanced",
    "resumed",
    "paused",
    "followed_up",
    "answered",
    "ticked",
)


@dataclass(frozen=True, kw_only=True)
class Flip:
    """A property that held for the first time, broke, or held again."""

    property: str
    how: str  # "holds", "broke", "holds again"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One moment. `at` is seconds since coding began, negative before it; `version` the hash of the code."""

    at: float
    utc: str
    kind: str
    stage: int
    says: str
    version: str | None
    held: int | None  # core properties that held, of `core`
    core: int | None
    holding: tuple[str, ...] | None  # their names
    lacking: tuple[str, ...] | None  # the other core properties
    flips: tuple[Flip, ...]
    code: str | None
    diff: str | None


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A time without any activity."""

    at: float
    seconds: float


def points(
    session: Session, reports: Mapping[tuple[int, str], Mapping[str, Any]], source: Callable[[str], bytes]
) -> list[Point]:
    """Every event as a point in time, in order."""
    made: list[Point] = []
    start = _start(session)
    ever: dict[int, set[str]] = {}
    now: dict[int, set[str]] = {}
    shown: dict[int, str] = {}
    for event in session.events:
        digest = event.source or (event.data.get("taken") if event.kind == "time_up" else None)
        report = reports.get((event.stage, digest)) if digest else None
        flips: tuple[Flip, ...] = ()
        held = core = passing = lacking = None
        if report is not None:
            outcomes = {one["property"]: one["outcome"] for one in report["findings"] if one["tier"] == "core"}
            holding = {name for name, outcome in outcomes.items() if outcome == "passed"}
            held, core = len(holding), len(outcomes)
            passing, lacking = tuple(sorted(holding)), tuple(sorted(outcomes.keys() - holding))
            known, last = ever.setdefault(event.stage, set()), now.get(event.stage, set())
            holding |= {name for name in last if outcomes.get(name) == "skipped"}  # not tried is not broken
            flips = _flips(known, last, holding)
            known |= holding
            now[event.stage] = holding
        code = diff = None
        if digest is not None and digest != shown.get(event.stage):
            code = as_text(source(digest))
            last_shown = shown.get(event.stage) or _grown_from(session, event.stage, shown)
            diff = difference(as_text(source(last_shown)), code) if last_shown is not None else None
            shown[event.stage] = digest
        made.append(
            Point(
                at=round(_since(start, event), 1),
                utc=event.moment.utc.isoformat(timespec="seconds"),
                kind=event.kind,
                stage=event.stage,
                says=_says(session, event),
                version=digest,
                held=held,
                core=core,
                holding=passing,
                lacking=lacking,
                flips=flips,
                code=code,
                diff=diff,
            )
        )
    return made


def told(session: Session) -> list[tuple[int, float, str]]:
    """(number, seconds since coding began, what happened) for every event."""
    start = _start(session)
    return [(event.number, max(0.0, _since(start, event)), _says(session, event)) for event in session.events]


def gaps(session: Session) -> list[Gap]:
    """The times of more than two minutes without a save, a run, a question or an answer."""
    start = _start(session)
    seen = [event for event in session.events if event.kind in _ACTIVE or event.kind == "time_up"]
    found = []
    for before, event in itertools.pairwise(seen):
        seconds = moments.passed(before.moment, event.moment)
        if seconds > IDLE_SECONDS and before.kind != "paused":
            found.append(Gap(at=round(_since(start, before), 1), seconds=round(seconds, 1)))
    return found


def as_text(source: bytes) -> str:
    """An attempt's bytes as text that is safe to print."""
    return plain(source.decode("utf-8", "replace"))


def _flips(ever: set[str], before: set[str], holding: set[str]) -> tuple[Flip, ...]:
    made = [Flip(property=name, how="holds again" if name in ever else "holds") for name in sorted(holding - before)]
    return tuple(made + [Flip(property=name, how="broke") for name in sorted(before - holding)])


def difference(before: str, after: str) -> str:
    """The changes, as the lines of a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2)
    return "\n".join(list(lines)[2:])  # without the two lines of file names


def _grown_from(session: Session, stage: int, shown: Mapping[int, str]) -> str | None:
    """The last version of the stage before, where this stage goes on in the same file."""
    parts = chain(session.stages, stage)
    return shown.get(parts[-2]) if len(parts) > 1 else None


def _start(session: Session) -> Event | None:
    return next((event for event in session.events if event.kind == "began"), None)


def _since(start: Event | None, event: Event) -> float:
    if start is None:
        return 0.0
    if event.number < start.number:
        return -moments.passed(event.moment, start.moment)
    return moments.passed(start.moment, event.moment)


def _says(session: Session, event: Event) -> str:
    kata, data = session.stages[event.stage].kata or "questions", event.data
    match event.kind:
        case "created":
            return "interview created"
        case "briefed":
            return "the briefing begins"
        case "asked":
            text = one_line(data.get("text", ""), most=100)
            if data["question"] is None:
                return f"{kata}: asked what nothing answers: {text}"
            return f"{kata}: asked question {data['question']}" + (f": {text}" if text else "")
        case "began" | "advanced":
            return f"{kata}: coding begins"
        case "saved":
            return f"{kata}: saved ({data['size']} bytes)"
        case "ran":
            what = "the file with its own tests" if data.get("own") else "the smoke check"
            return f"{kata}: ran {what}, {data['outcome']}"
        case "submitted":
            return f"{kata}: submitted"
        case "time_up":
            return f"{kata}: the time is up; version taken: {data['how']}"
        case "announced":
            return f"{moments.in_words(data['left'] * 60)} left"
        case "clock_set":
            way = "forward" if data["by"] > 0 else "back"
            return f"the machine's clock was set {way} by {moments.in_words(abs(data['by']))}; the time left stayed"
        case "paused":
            return "paused"
        case "resumed":
            how = {True: "came back, still paused", False: "the clock runs again", None: "came back"}[
                data.get("paused")
            ]
            return f"{how}, after {moments.in_words(data['gap'])}"
        case "followed_up":
            return "the questions begin" if kata == "questions" else f"{kata}: the questions begin"
        case "answered":
            judged = {True: "right", False: "wrong", None: "free answer"}[data["right"]]
            return f"answered question {data['place']}: {judged}"
        case "ticked":
            ticked = "1 point" if len(data["points"]) == 1 else f"{len(data['points'])} points"
            return one_line(f"ticked {ticked} of question {data['place']}")
        case "reviewed":
            return "the review begins"
        case "closed":
            return "closed"
        case "abandoned":
            return "ended early"
        case "hinted":
            return f"{kata}: the interviewer gave hint {data['hint']}"
        case "rated":
            return one_line(f"the interviewer rated {data['line']}: {data['score']} of 4", most=100)
        case "noted":
            return "the interviewer took a note"
