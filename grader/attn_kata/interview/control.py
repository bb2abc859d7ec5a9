"""The operations of a session, for every user interface: each call is checked, and saved before it returns.

Every function that changes something reads the clock first. When the time is up, the session takes the file from the
disk and refuses the operation. A user interface may call `tick` as often as it likes (the room: once a second).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attn_kata.errors import UsageError
from attn_kata.interview import content, deadline, growing, moments, plans, questions, refusals, stubs
from attn_kata.interview.attempts import Found, written
from attn_kata.interview.moments import Clock, Moment
from attn_kata.interview.plans import Plan
from attn_kata.interview.rounds import chain
from attn_kata.interview.session import Kind, Mode, Session
from attn_kata.interview.store import Entry, Store, digest_of, entry
from attn_kata.rounds.spoiled import Spoiled

_ON_THE_CLOCK = ("asked", "saved", "ran", "submitted", "advanced", "answered", "ticked")


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What every call needs: the store and the clock."""

    store: Store
    clock: Clock


@dataclass(frozen=True, kw_only=True)
class Tick:
    """The session now: seconds left (negative when over), and the announcements that this look was the first to make."""

    session: Session
    left: float
    news: tuple[str, ...] = ()


def start(
    desk: Desk,
    plan: Plan,
    *,
    mode: Mode,
    folder: Path,
    seed: int | None = None,
    helped: Mapping[str, int] = MappingProxyType({}),
    spoiled: Mapping[int, Spoiled] = MappingProxyType({}),
    listed: bool = False,
) -> Session:
    """A new session, in its briefing. Katas that the plan leaves open are drawn. Attempts go into `folder`; `helped`
    are the hints given before; `spoiled` is the code for each round that has one (`preparing` makes it).
    `listed` shows the list of clarifying questions.

    Raises AlreadyActive, NotKept, KataFileError, and UsageError when `folder` cannot be written.
    """
    stubs.check_folder(folder)
    seed = secrets.randbelow(2**31) if seed is None else seed
    plan = plans.drawn(plan, before=desk.store.katas(), seed=seed)
    for one in plan.rounds:
        if one.kata:
            content.of_kata(one.kata)  # report broken content now, before the clock runs
    session = desk.store.create(
        track=plan.name,
        mode=mode,
        stages=plan.rounds,
        seed=seed,
        folder=folder,
        moment=moments.read(desk.clock),
        data={"spoiled": {str(place): one.to_dict() for place, one in spoiled.items()}, "listed": listed},
    )
    return change(desk, session.id, lambda session, now: [entry(session, now, "briefed", None, **helped)])


def tick(desk: Desk, number: int) -> Tick:
    """Read the clock: make announcements, and take the file when the time is up. Cheap when nothing is due."""
    session = desk.store.load(number)
    now = moments.read(desk.clock)
    due: list[Entry] = []
    if deadline.due(session, now):

        def decide(session: Session) -> Iterable[Entry]:
            due[:] = deadline.keeping(session, moments.read(desk.clock))
            return due

        session = desk.store.change(number, decide)
    news = tuple(one.data["says"] for one in due if one.data["says"])
    return Tick(session=session, left=session.left(now), news=news)


def ask(desk: Desk, number: int, *questions: int, text: str = "") -> Session:
    """Ask clarifying questions (from 1) of this stage's kata. Asking again changes nothing.

    `text` is what the candidate typed. With no question, it is kept as one that nothing answers.
    """

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        refusals.unless_open(session)
        count = len(content.of_kata(session.kata).questions)
        said: dict[str, Any] = {"text": text} if text else {}
        for question in questions:
            if not 1 <= question <= count:
                raise UsageError(f"There is no question '{question}'.", next_step=f"Ask one from 1 to {count}")
            if (session.stage, question) not in session.asked:
                yield entry(session, now, "asked", question=question, **said)
        if not questions:
            yield entry(session, now, "asked", question=None, text=text)

    return change(desk, number, decide, needs="asked")


def begin(desk: Desk, number: int) -> Session:
    """Write the stub and start the clock; this sets the deadline."""
    session = desk.store.load(number)
    refusals.unless_allowed(session, "began")
    path = stubs.write(session, 0) if session.round.written else None

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        deadline = {"wall": now.wall + session.seconds, "boot": now.boot + session.seconds, "boot_id": now.boot_id}
        if path is not None:
            yield entry(session, now, "began", path.read_bytes(), file=str(path), deadline=deadline)
        else:
            yield entry(session, now, "began", None, deadline=deadline)
            yield _asking(session, 0, now)

    return change(desk, number, decide, needs="began")


def save(desk: Desk, number: int, source: bytes, *, stage: int | None = None) -> Session:
    """Keep a version of the attempt, with its event. A version equal to the newest one is not kept again.

    Raises UsageError when `stage`, the one that the text belongs to, is over.
    """

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        refusals.unless_at(session, stage)
        yield from _saving(session, now, source)

    return change(desk, number, decide, needs="saved")


def observe(desk: Desk, number: int) -> tuple[Session, Found | None]:
    """Keep the file if it changed on the disk; None outside coding. A file that is emptied is no version."""
    session = desk.store.load(number)
    if session.state != "coding" or session.file is None or session.left(moments.read(desk.clock)) <= 0:
        return session, None
    found = written(session.file)
    if found.source is not None and digest_of(found.source) != session.kept.get(session.stage):
        session = save(desk, number, found.source)
    return session, found


def ran(desk: Desk, number: int, source: bytes, *, outcome: str, own: bool = False) -> Session:
    """The public smoke check ran on `source`, or the file with its `own` tests; `outcome` is passed, failed or ungraded."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        yield entry(session, now, "ran", source, outcome=outcome, own=own)

    return change(desk, number, decide, needs="ran")


def submit(desk: Desk, number: int, source: bytes, *, stage: int | None = None) -> Session:
    """Hand in this stage's attempt. Raises UsageError when `stage`, the one that it belongs to, is over."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        refusals.unless_at(session, stage)
        yield entry(session, now, "submitted", source)

    return change(desk, number, decide, needs="submitted")


def advance(desk: Desk, number: int, *, seen: Session | None = None) -> Session:
    """Go to the next step: coding, the next round, the review, the end.

    If the session has left the step that the caller has `seen`, nothing happens: two keys are not two steps.
    """
    session = tick(desk, number).session
    if seen is not None and _step(seen) != _step(session):
        return session
    if session.state == "ready":
        return change(desk, number, lambda session, now: [entry(session, now, "briefed")], needs="briefed")
    if session.state == "briefing":
        return begin(desk, number)
    if session.state in ("submitted", "time_up", "follow_up"):
        return _next_round(desk, session)
    if session.state == "review":
        return change(desk, number, lambda session, now: [entry(session, now, "closed")], needs="closed")
    raise refusals.refused(session, "submitted" if session.state == "coding" else "closed", doing="go on")


def _next_round(desk: Desk, seen: Session) -> Session:
    place = seen.next_stage
    if place is None:
        return change(
            desk, seen.id, _from(seen, lambda session, now: entry(session, now, "reviewed")), needs="reviewed"
        )
    if not seen.stages[place].written:
        return change(
            desk, seen.id, _from(seen, lambda session, now: _asking(session, place, now)), needs="followed_up"
        )
    if seen.stages[place].kind == "grow":
        before = chain(seen.stages, place)[-2]
        path, how = growing.write(seen, place, handed_in=desk.store.source(seen.id, seen.finals[before]))
    else:
        path, how = stubs.write(seen, place), "new"
    data = {"file": str(path), "how": how}
    source = path.read_bytes()

    def begins(session: Session, now: Moment) -> Entry:
        return Entry(kind="advanced", stage=place, moment=now, data=data, source=source)

    return change(desk, seen.id, _from(seen, begins), needs="advanced")


def _step(session: Session) -> tuple[str, int]:
    return session.state, session.stage


def _from(seen: Session, make: Callable[[Session, Moment], Entry]) -> Callable[[Session, Moment], list[Entry]]:
    """One entry, or none where another terminal has gone on from `seen`."""
    return lambda session, now: [make(session, now)] if _step(session) == _step(seen) else []


def _asking(session: Session, place: int, now: Moment) -> Entry:
    return Entry(kind="followed_up", stage=place, moment=now, data={"questions": questions.of_round(session, place)})


def answer(desk: Desk, number: int, place: int, text: str) -> Session:
    """Answer the follow-up question (from 1). A second answer replaces the first. Raises UsageError for no answer."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        _follow_up(session, place)
        right, more = questions.judge(session, place, text)
        yield entry(session, now, "answered", place=place, text=text.strip(), right=right, **more)

    return change(desk, number, decide, needs="answered")


def tick_points(desk: Desk, number: int, place: int, points: tuple[int, ...]) -> Session:
    """Mark which points of the model answer (from 1) the free answer had."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        question = _follow_up(session, place)
        if question["kind"] != "free":
            raise UsageError(f"Question {place} is graded, not ticked.", next_step=refusals.NEXT["follow_up"])
        if place not in session.answers:
            raise UsageError(
                f"Question {place} has no answer yet.", next_step=f"attn-kata interview answer {place} TEXT"
            )
        odd = [point for point in points if not 1 <= point <= len(question["points"])]
        if odd:
            raise UsageError(
                f"There is no point '{odd[0]}'.", next_step=f"Points go from 1 to {len(question['points'])}"
            )
        yield entry(session, now, "ticked", place=place, points=sorted(set(points)))

    return change(desk, number, decide, needs="ticked")


def pause(desk: Desk, number: int) -> Session:
    """Stop the clock of a coached session. A mock one is refused."""

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        if session.mode == "mock":
            raise UsageError(
                "A mock interview cannot pause.", next_step="The clock still runs: attn-kata interview status"
            )
        if not session.paused:
            yield entry(session, now, "paused")

    return change(desk, number, decide, needs="paused")


def resume(desk: Desk, number: int, *, stay_paused: bool = False) -> Session:
    """Come back to a session, after a pause or after the terminal was closed. Keeps the length of the gap.

    It ends a pause unless `stay_paused`: opening the room alone does not restart the clock.
    """

    def decide(session: Session, now: Moment) -> Iterable[Entry]:
        pause: dict[str, Any] = {"paused": stay_paused} if session.paused else {}
        yield entry(session, now, "resumed", gap=round(moments.passed(session.last, now), 3), **pause)

    return change(desk, number, decide, needs="resumed")


def end(desk: Desk, number: int) -> Session:
    """End the session: in its review it is closed, before that it is abandoned. The file on the disk is kept first."""
    session, _ = observe(desk, number)
    kind: Kind = "closed" if session.state == "review" else "abandoned"
    return change(desk, number, lambda session, now: [entry(session, now, kind)], needs=kind)


def change(
    desk: Desk, number: int, decide: Callable[[Session, Moment], Iterable[Entry]], needs: Kind = "briefed"
) -> Session:
    """One change in one transaction, after the clock's own events. Refused when the state does not allow it."""
    if deadline.due(desk.store.load(number), moments.read(desk.clock)):
        tick(desk, number)

    def checked(session: Session) -> Iterable[Entry]:
        now = moments.read(desk.clock)  # read inside the transaction, so that events are in the order of time
        refusals.unless_allowed(session, needs)
        if needs in _ON_THE_CLOCK and session.clock_runs and session.left(now) <= 0:
            raise refusals.time_is_up(session)  # the time ended after the tick: the next tick takes the file
        return list(decide(session, now))

    return desk.store.change(number, checked)


def _saving(session: Session, now: Moment, source: bytes) -> Iterable[Entry]:
    digest = digest_of(source)
    if digest != session.kept.get(session.stage):
        yield entry(session, now, "saved", source, size=len(source))


def _follow_up(session: Session, place: int) -> Mapping[str, Any]:
    count = len(session.follow_ups)
    if not 1 <= place <= count:
        raise UsageError(f"There is no question '{place}'.", next_step=f"Answer one from 1 to {count}")
    if place not in session.places:
        own = f"{session.places[0]} to {session.places[-1]}"
        raise UsageError(f"The round of question '{place}' is over.", next_step=f"Answer one from {own}")
    return session.follow_ups[place - 1]
