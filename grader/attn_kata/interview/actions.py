"""The actions of a session and their texts: one call each, shared by the commands and by line mode.

An engine is only started to run or grade something. A caller with a warm engine passes that one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attn_kata import workspace
from attn_kata.errors import UsageError, why
from attn_kata.history import History, Progress
from attn_kata.interview import active_mock, control, moments, plans, preparing, refusals, words
from attn_kata.interview.attempts import written
from attn_kata.interview.control import Desk
from attn_kata.interview.plans import Plan
from attn_kata.interview.rounds import Round
from attn_kata.interview.session import Session
from attn_kata.interview.storage import NotKept
from attn_kata.interview.store import AlreadyActive
from attn_kata.rounds.record import Record
from attn_kata.rounds.spoiled import Spoiled

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

Tell = Callable[[int, int], None]
Engines = Callable[[], "AbstractContextManager[Engine]"]
REVIEWED = ("review", "closed")


def _silent(done: int, of: int) -> None:
    """For callers that do not show the progress of the grading."""


def active(desk: Desk, warn: Callable[[str], None], *, only_look: bool = False) -> Session:
    """The running session, after announcements of the clock were passed to `warn` and the file was kept.

    Raises UsageError when none runs, and NotKept unless `only_look`.
    """
    found = desk.store.active()
    if found is None:
        raise UsageError("No interview is running.", next_step="Start one: attn-kata interview start")
    try:
        for sentence in control.tick(desk, found.id).news:
            warn(sentence)
        return control.observe(desk, found.id)[0]
    except NotKept as problem:
        if not only_look:
            raise
        warn(problem.what)
        return found


def start(
    desk: Desk,
    plan: Plan,
    *,
    coached: bool,
    folder: Path | None,
    history: History,
    engines: Engines | None = None,
    listed: bool = False,
) -> str:
    """A new session, and its briefing. `engines` are for plans with code to prepare."""
    running = desk.store.active()
    if running is not None:
        raise AlreadyActive(running)
    seed = secrets.randbelow(10**6)
    plan = plans.drawn(plan, before=desk.store.katas(), seed=seed)
    spoiled: dict[int, Spoiled] = {}
    if preparing.needs_engine(plan):
        assert engines is not None
        with engines() as engine:
            spoiled = preparing.prepared(plan, seed=seed, engine=engine)
    hints, references = _help_so_far(plan.rounds, history)
    session = control.start(
        desk,
        plan,
        mode="coached" if coached else "mock",
        folder=folder or _free_folder(desk),
        seed=seed,
        helped={"hints": hints, "references": references},
        spoiled=spoiled,
        listed=listed,
    )
    told = (
        "You see the findings after every run, and the session is marked as coached."
        if coached
        else "Like a real interview: hidden tests, no pause, no hints. A run shows the example, shapes and your prints."
    )
    return "\n\n".join(
        [
            f"Interview {session.id}: {session.track} ({session.mode}), {moments.in_words(session.seconds)} in total.",
            words.wrapped(told),
            words.briefing(session),
            (
                f"Ask a question: attn-kata interview ask {'1' if listed else 'WORDS …'}\n"
                if words.may_ask(session)
                else ""
            )
            + "Start the clock: attn-kata interview next",
        ]
    )


def status(desk: Desk, session: Session) -> str:
    """The state of the session; in the briefing and the follow-up with the questions."""
    told = words.status(session, moments.read(desk.clock))
    if session.state == "briefing":
        return f"{words.briefing(session)}\n\n{told}"
    if session.state == "follow_up":
        return f"{words.follow_ups(session)}\n\n{told}"
    return told


def ask(desk: Desk, session: Session, text: str) -> str:
    """The answer to a clarifying question in the candidate's own words; by its number where the list is shown."""
    text = text.strip()
    refusals.unless_allowed(session, "asked")
    refusals.unless_open(session)
    if text.isascii() and text.isdigit():
        if not session.listed:
            raise UsageError(
                f"'{text}' is not a question.", next_step="Ask in your own words: attn-kata interview ask WORDS …"
            )
        return words.answer(control.ask(desk, session.id, int(text[:9])), int(text[:9]))
    if not text:
        raise UsageError("The question is empty.", next_step="Ask in your own words: attn-kata interview ask WORDS …")
    from attn_kata.interview import clarifying  # only here: no other command needs its wordings

    found = clarifying.heard(session.kata, text)
    session = control.ask(desk, session.id, *found, text=text[: clarifying.LONGEST])
    return "\n".join(words.answer(session, number) for number in found) or clarifying.UNKNOWN


def submit(desk: Desk, session: Session) -> str:
    """Hand in the file as it is on the disk. If it is gone, hand in the newest saved version."""
    refusals.unless_allowed(session, "submitted")
    assert session.file is not None
    found, said = written(session.file), ""
    source = found.source
    if source is None:
        source = desk.store.source(session.id, session.kept[session.stage])
        said = f"{found.why}, so the newest saved version is handed in.\n"
    session = control.submit(desk, session.id, source)
    coming = words.coming(session)
    if session.last_stage:
        return f"{said}Handed in. Next: {coming}: attn-kata interview next"
    left = words.clock(session, moments.read(desk.clock))
    return f"{said}Handed in. The clock still runs. Next: {coming}: attn-kata interview next\n{left}"


def advance(
    desk: Desk,
    session: Session,
    engines: Engines,
    history: History,
    *,
    skip: bool,
    width: int,
    color: bool,
    tell: Tell = _silent,
) -> str:
    """Go to the next step, and return its text."""
    open_ones = [place for place in session.places if place not in session.answers]
    if session.state == "follow_up" and open_ones and not skip:
        raise UsageError(
            f"Question {open_ones[0]} has no answer yet ({len(open_ones)} open).",
            next_step=f"attn-kata interview answer {open_ones[0]} TEXT, or skip them: attn-kata interview next --skip",
        )
    session = control.advance(desk, session.id, seen=session)
    if session.state == "coding":
        told = words.coding(session, moments.read(desk.clock))
        return told if session.stage == 0 else f"{words.briefing(session)}\n\n{told}"
    if session.state == "review":
        return show(desk, session, engines, history, form="terminal", width=width, color=color, tell=tell)
    if session.state == "closed":
        return f"Interview {session.id} is closed. To see it again: attn-kata interview show {session.id}"
    return status(desk, session)


def answer(desk: Desk, session: Session, place: int, text: str) -> str:
    """Keep an answer. The review says if it is right; the points of a free answer are shown at once."""
    session = control.answer(desk, session.id, place, text)
    if session.follow_ups[place - 1]["kind"] == "free":
        return f"{words.points(session, place)}\n\nTick them: attn-kata interview tick {place} 1 2 …"
    return "Answer saved."


def resume(desk: Desk, session: Session, *, stay_paused: bool = False) -> str:
    """Come back to the session. A file that is gone or empty is restored from the newest saved version."""
    session = control.resume(desk, session.id, stay_paused=stay_paused)
    said = ""
    found = written(session.file) if session.state == "coding" and session.file is not None else None
    if found is not None and session.file is not None and found.lost:
        try:
            session.file.parent.mkdir(parents=True, exist_ok=True)
            session.file.write_bytes(desk.store.source(session.id, session.kept[session.stage]))
        except OSError as problem:
            raise UsageError(f"'{workspace.shown(session.file)}' cannot be written: {why(problem)}.") from problem
        said = f"{found.why}, so the newest saved version is restored.\n\n"
    strays = words.strays(session)
    return said + (f"{words.wrapped(strays)}\n\n" if strays else "") + status(desk, session)


def show(
    desk: Desk,
    session: Session,
    engines: Engines,
    history: History,
    *,
    form: str,
    width: int = 80,
    color: bool = False,
    tell: Tell = _silent,
) -> str:
    """The review of a session in one of pages.FORMATS, made from `body_of`."""
    from attn_kata.interview import pages

    body = body_of(desk, session, engines, history, tell)
    if form == "terminal":
        return pages.as_terminal(body, width=width, color=color)
    return {"json": pages.as_json, "markdown": pages.as_markdown, "html": pages.as_html}[form](body)


def body_of(desk: Desk, session: Session, engines: Engines, history: History, tell: Tell = _silent) -> dict[str, Any]:
    """The body of a session's review. Grades ungraded versions. Raises UsageError before the review.

    `tell` gets the number of graded versions and the total.
    """
    from attn_kata.interview import pages, practising, review, scorecard  # only here: most commands need none of them

    running = active_mock()
    if running is not None and running != session.name:
        raise UsageError(
            f"You cannot see past interviews while mock {running} runs.", next_step="attn-kata interview status"
        )
    if not (session.state in REVIEWED or session.state == "abandoned"):
        raise UsageError(
            f"Interview {session.id} has no review yet. Its state: {words.STATES[session.state]}.",
            next_step=words.NEXT[session.state].removeprefix("Next: "),
        )
    if not review.graded(desk.store, session):
        with engines() as engine:
            review.grade(desk.store, session, engine, tell)
    reviewed = review.gather(desk.store, session)
    card = None
    if session.state in REVIEWED:
        before = next((event.data for event in session.events if event.kind == "briefed"), {})
        hints, references = _help_so_far(session.stages, history)
        kept = desk.store.scorecards()
        if session.id in kept:
            hints, references = kept[session.id]["helped"]
        else:
            hints, references = hints - before.get("hints", 0), references - before.get("references", 0)
        card = scorecard.score(reviewed, hints=max(0, hints), references=max(0, references))
        if session.id not in kept:
            desk.store.keep_scorecard(session.id, {**card.to_dict(), "helped": [hints, references]})
            for one in reviewed.taken:
                if one.report is not None and one.report.hunt is None:  # mending is not writing
                    history.record(one.report, session.files[one.stage], whole=True)
            practising.keep(reviewed, Record(lambda sentence: None))
    spread = scorecard.spread(desk.store.scorecards(), until=session.id)
    return pages.body(reviewed, card, spread)


def pick(desk: Desk, number: int | None) -> Session:
    """The session of that number, or the newest one."""
    if number is not None:
        return desk.store.load(number)
    every = desk.store.sessions()
    if not every:
        raise UsageError("There are no interviews yet.", next_step="Start one: attn-kata interview start")
    return every[0]


def _free_folder(desk: Desk) -> Path:
    """`interview-3` in the current folder for the third session, or the next number that is free."""
    try:
        here = Path.cwd()
    except OSError as problem:
        raise UsageError(
            f"The current folder cannot be used: {why(problem)}.", next_step="cd to another one"
        ) from problem
    number = 1 + max((session.id for session in desk.store.sessions()), default=0)
    while (folder := here / f"interview-{number}").exists():
        number += 1
    return folder


def _help_so_far(rounds: tuple[Round, ...], history: History) -> tuple[int, int]:
    """The number of hints given and references shown for these katas so far."""
    progress = history.progress()
    every = [progress.get(slug, Progress()) for slug in {one.kata for one in rounds}]
    return sum(one.hints for one in every), sum(one.gave_up for one in every)
