"""A session as a value, computed from its events in order. It uses no file, no database and no clock.

    ready → briefing → coding ⇄ submitted → follow_up → review → closed      (any state before closed → abandoned)
                          ↘ time_up ↗

A stage is a place in the plan, and what is done there is a round. A round with a file is `coding`, then `submitted`; a
round of questions is `follow_up`. The clock runs from `began` until the last round but the talk is over, or the time is
up, also between rounds. A coached session may pause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from attn_kata.interview.moments import NEVER, Moment, passed
from attn_kata.interview.rounds import Round
from attn_kata.rounds.spoiled import Spoiled

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
    "clock_set",
    "paused",
    "resumed",
    "followed_up",
    "answered",
    "ticked",
    "reviewed",
    "closed",
    "abandoned",
    "hinted",
    "rated",
    "noted",
]

_BEFORE_THE_END: tuple[State, ...] = ("ready", "briefing", "coding", "submitted", "time_up", "follow_up", "review")

# The states for people to read; JSON has the keys.
STATE_NAMES: Mapping[str, str] = {
    "ready": "not started",
    "briefing": "briefing",
    "coding": "coding",
    "submitted": "submitted",
    "time_up": "time up",
    "follow_up": "questions",
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
    "advanced": ("submitted", "follow_up"),
    "time_up": ("coding", "submitted", "follow_up"),
    "announced": ("coding", "submitted", "follow_up"),
    "clock_set": ("coding", "submitted", "follow_up"),
    "paused": ("coding", "follow_up"),
    "resumed": _BEFORE_THE_END,
    "followed_up": ("submitted", "time_up", "follow_up"),
    "answered": ("follow_up",),
    "ticked": ("follow_up",),
    "reviewed": ("submitted", "time_up", "follow_up"),
    "closed": ("review",),
    "abandoned": _BEFORE_THE_END,
    # What an interviewer does, in partner mode.
    "hinted": ("coding", "submitted"),
    "rated": _BEFORE_THE_END,
    "noted": _BEFORE_THE_END,
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
    stages: tuple[Round, ...]
    seed: int
    folder: Path
    events: tuple[Event, ...] = ()
    state: State = "ready"
    stage: int = 0
    used: float = 0.0
    last: Moment = NEVER
    paused: bool = False
    files: Mapping[int, Path] = field(default_factory=dict)  # stage → the attempt
    listed: bool = False  # whether the candidate sees the list of questions
    asked: frozenset[tuple[int, int]] = frozenset()  # (stage, number of the question)
    unknown: tuple[tuple[int, str], ...] = ()  # (stage, text) of questions that the content does not answer
    announced: frozenset[float] = frozenset()
    kept: Mapping[int, str] = field(default_factory=dict)  # stage → hash of the newest snapshot
    finals: Mapping[int, str] = field(default_factory=dict)  # stage → hash of the submitted or taken version
    spoiled: Mapping[int, Spoiled] = field(default_factory=dict)  # stage → the code of a hunt or a review
    follow_ups: tuple[Mapping[str, Any], ...] = ()  # as drawn, of all rounds so far
    answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)  # place of the follow-up → answer
    hints: tuple[tuple[int, int], ...] = ()  # (stage, number of the hint) that the interviewer gave
    ratings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of the interviewer, by line of the rubric
    notes: tuple[str, ...] = ()  # of the interviewer
    ticks: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # place of a free follow-up → points ticked

    @property
    def name(self) -> str:
        """`interview 3 (core)`."""
        return f"interview {self.id} ({self.track}{', coached' if self.mode == 'coached' else ''})"

    @property
    def round(self) -> Round:
        """What is done now."""
        return self.stages[self.stage]

    @property
    def kata(self) -> str:
        return self.round.kata

    @property
    def file(self) -> Path | None:
        """The attempt of this stage, None before coding."""
        return self.files.get(self.stage)

    @property
    def seconds(self) -> float:
        """The coding time of all stages together."""
        return sum(stage.minutes for stage in self.stages) * 60

    @property
    def next_stage(self) -> int | None:
        """The place of the next round; after the end of the time only the talk is left. None: the review comes."""
        coming = [place for place, one in enumerate(self.stages) if place > self.stage]
        if self.state == "time_up":
            coming = [place for place in coming if not self.stages[place].timed]
        return coming[0] if coming else None

    @property
    def last_stage(self) -> bool:
        """Whether no round on the clock follows."""
        return not any(one.timed for one in self.stages[self.stage + 1 :])

    @property
    def clock_runs(self) -> bool:
        if self.paused:
            return False
        if self.state == "submitted":
            return not self.last_stage
        return self.state in ("coding", "follow_up") and self.round.timed

    @property
    def places(self) -> tuple[int, ...]:
        """The places (from 1) of the questions of this round."""
        if self.state != "follow_up":
            return ()
        own = [place for place, one in enumerate(self.follow_ups, 1) if one.get("stage", self.stage) == self.stage]
        return tuple(own)

    @property
    def over(self) -> bool:
        """Whether the session is closed or abandoned."""
        return self.state in ("closed", "abandoned")

    @property
    def begun(self) -> tuple[int, ...]:
        """The stages with a file that were begun."""
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
        case "created":
            made = {int(stage): Spoiled.from_dict(one) for stage, one in data.get("spoiled", {}).items()}
            return replace(session, spoiled=made, listed=bool(data.get("listed", False)))
        case "briefed":
            return replace(session, state="briefing")
        case "asked" if data["question"] is None:
            return replace(session, unknown=(*session.unknown, (event.stage, data["text"])))
        case "asked":
            return replace(session, asked=session.asked | {(event.stage, data["question"])})
        case "began" if "file" not in data:  # the first round has questions
            return replace(session, state="submitted", stage=event.stage)
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
            # The event of an older session names the stage before its talk, which is always the last.
            stage = event.stage if not session.stages[event.stage].written else len(session.stages) - 1
            questions = (*session.follow_ups, *data["questions"])
            return replace(session, state="follow_up", stage=stage, follow_ups=questions)
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
        case "hinted":
            return replace(session, hints=(*session.hints, (event.stage, data["hint"])))
        case "rated":
            return replace(session, ratings={**session.ratings, data["line"]: data})
        case "noted":
            return replace(session, notes=(*session.notes, data["text"]))
        case _:  # saved, ran, clock_set: kept above
            return session
