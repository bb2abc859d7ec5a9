"""A session as a value, computed from its events in order. It uses no file, no database and no clock.

    ready → briefing → coding ⇄ submitted → follow_up → review → closed      (⇄: `advanced` to the next stage)
                          ↘ time_up ↗                                        (any state before closed → abandoned)

The clock runs from `began` until the last stage is submitted or the time is up, also between stages. A coached session
may pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from attn_kata.interview.moments import NEVER, Moment, passed
from attn_kata.interview.plans import Stage

State = Literal["ready", "briefing", "coding", "submitted", "time_up", "follow_up", "review", "closed", "abandoned"]
Mode = Literal["mock", "coached"]
Kind = Literal[
    "created",
    "briefed",
    "asked",
    "began",
    "saved",
    "ran",
    "submitted",
    "advanced",
    "time_up",
    "announced",
    "paused",
    "resumed",
    "followed_up",
    "answered",
    "ticked",
    "reviewed",
    "closed",
    "abandoned",
]

_BEFORE_THE_END: tuple[State, ...] = ("ready", "briefing", "coding", "submitted", "time_up", "follow_up", "review")

# The states for people to read; JSON has the keys.
STATE_NAMES: Mapping[str, str] = {
    "ready": "not started",
    "briefing": "briefing",
    "coding": "coding",
    "submitted": "submitted",
    "time_up": "time up",
    "follow_up": "follow-up questions",
    "review": "review",
    "closed": "closed",
    "abandoned": "ended early",
}

# The states in which an event may happen. Every other combination is refused.
ALLOWED: Mapping[Kind, tuple[State, ...]] = {
    "created": (),
    "briefed": ("ready",),
    "asked": ("briefing", "coding"),
    "began": ("briefing",),
    "saved": ("coding",),
    "ran": ("coding",),
    "submitted": ("coding",),
    "advanced": ("submitted",),
    "time_up": ("coding", "submitted"),
    "announced": ("coding", "submitted"),
    "paused": ("coding",),
    "resumed": _BEFORE_THE_END,
    "followed_up": ("submitted", "time_up"),
    "answered": ("follow_up",),
    "ticked": ("follow_up",),
    "reviewed": ("follow_up",),
    "closed": ("review",),
    "abandoned": _BEFORE_THE_END,
}


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event. `source` is the hash of the snapshot kept with it, or None."""

    kind: Kind
    stage: int
    moment: Moment
    data: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    number: int = 0


@dataclass(frozen=True, kw_only=True)
class Session:
    """One timed mock interview. `used` is the coding time up to `last`, the moment of the last event."""

    id: int
    track: str
    mode: Mode
    stages: tuple[Stage, ...]
    seed: int
    folder: Path
    events: tuple[Event, ...] = ()
    state: State = "ready"
    stage: int = 0
    used: float = 0.0
    last: Moment = NEVER
    paused: bool = False
    files: Mapping[int, Path] = field(default_factory=dict)  # stage → the attempt
    asked: frozenset[tuple[int, int]] = frozenset()  # (stage, number of the question)
    announced: frozenset[float] = frozenset()
    kept: Mapping[int, str] = field(default_factory=dict)  # stage → hash of the newest snapshot
    finals: Mapping[int, str] = field(default_factory=dict)  # stage → hash of the submitted or taken version
    follow_ups: tuple[Mapping[str, Any], ...] = ()  # as drawn
    answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # place of the follow-up → answer
    ticks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # place of a free follow-up → points ticked

    @property
    def name(self) -> str:
        """`interview 3 (core)`."""
        return f"interview {self.id} ({self.track}{', coached' if self.mode == 'coached' else ''})"

    @property
    def kata(self) -> str:
        return self.stages[self.stage].kata

    @property
    def file(self) -> Path | None:
        """The attempt of this stage, None before coding."""
        return self.files.get(self.stage)

    @property
    def seconds(self) -> float:
        """The coding time of all stages together."""
        return sum(stage.minutes for stage in self.stages) * 60

    @property
    def last_stage(self) -> bool:
        return self.stage == len(self.stages) - 1

    @property
    def clock_runs(self) -> bool:
        return not self.paused and (self.state == "coding" or (self.state == "submitted" and not self.last_stage))

    @property
    def over(self) -> bool:
        """Whether the session is closed or abandoned."""
        return self.state in ("closed", "abandoned")

    @property
    def begun(self) -> tuple[int, ...]:
        """The stages that were begun."""
        return tuple(self.files)

    def used_at(self, now: Moment) -> float:
        """Seconds of coding time used at `now`."""
        return self.used + (passed(self.last, now) if self.clock_runs else 0.0)

    def left(self, now: Moment) -> float:
        """Seconds of coding time left at `now`; negative when it is over."""
        return self.seconds - self.used_at(now)


def after(session: Session, event: Event) -> Session:
    """The session after `event`. Does not check whether the event is allowed."""
    session = replace(
        session,
        used=session.used_at(event.moment),
        last=event.moment,
        events=(*session.events, event),
    )
    if event.source is not None:
        session = replace(session, kept={**session.kept, event.stage: event.source})
    data = event.data
    match event.kind:
        case "briefed":
            return replace(session, state="briefing")
        case "asked":
            return replace(session, asked=session.asked | {(event.stage, data["question"])})
        case "began" | "advanced":
            files = {**session.files, event.stage: Path(data["file"])}
            return replace(session, state="coding", stage=event.stage, files=files)
        case "submitted":
            return replace(session, state="submitted", finals={**session.finals, event.stage: event.source or ""})
        case "time_up":
            finals = dict(session.finals)
            if session.state == "coding":
                finals[event.stage] = data["taken"]
            return replace(
                session, state="time_up", finals=finals, used=min(session.used, session.seconds), paused=False
            )
        case "announced":
            return replace(session, announced=session.announced | {data["left"]})
        case "paused":
            return replace(session, paused=True)
        case "resumed":
            return replace(session, paused=data.get("paused", False))
        case "followed_up":
            return replace(session, state="follow_up", follow_ups=tuple(data["questions"]))
        case "answered":
            return replace(session, answers={**session.answers, data["place"]: data})
        case "ticked":
            return replace(session, ticks={**session.ticks, data["place"]: tuple(data["points"])})
        case "reviewed":
            return replace(session, state="review")
        case "closed":
            return replace(session, state="closed")
        case "abandoned":
            return replace(session, state="abandoned")
        case _:  # created, saved, ran: kept above
            return session
