"""A run that the candidate asks for: the file with its own tests, the smoke check, or in a coached session a grading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attn_kata import workspace
from attn_kata.errors import UsageError
from attn_kata.interview import control, moments, refusals, words
from attn_kata.interview.actions import Engines
from attn_kata.interview.attempts import written
from attn_kata.interview.control import Desk
from attn_kata.interview.rounds import chain
from attn_kata.interview.session import Session

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine
    from attn_kata.interview.smoke import Smoke


def run(
    desk: Desk, session: Session, engines: Engines, *, width: int, color: bool, own: bool = False
) -> tuple[str, int]:
    """The text of a run, and its exit code. `own`: the file as a script, with the candidate's own tests.

    Else in a mock session the smoke check, in a coached one the whole report.
    """
    refusals.unless_allowed(session, "ran")
    assert session.file is not None
    found = written(session.file)
    if found.source is None:
        raise UsageError(f"{found.why}.", next_step=found.next_step)
    name, source = workspace.shown(session.file), found.source
    with engines() as engine:
        if own:
            from attn_kata.interview import script

            seen = script.run(engine, session.kata, source, attempt=name)
            session = control.ran(desk, session.id, source, outcome=seen.outcome, own=True)
            told, code = _seen(seen, width)
        elif session.mode == "coached":
            told, code, session = _graded(desk, session, engine, source, attempt=name, width=width, color=color)
        else:
            from attn_kata.interview import smoke

            seen = smoke.run(engine, session.kata, source, attempt=name, seed=session.seed)
            session = control.ran(desk, session.id, source, outcome=seen.outcome)
            told, code = _seen(seen, width)
    return f"{told}\n\n{words.clock(session, moments.read(desk.clock))}", code


def _seen(seen: Smoke, width: int) -> tuple[str, int]:
    told = "\n".join(words.fitted(line, width) for line in seen.lines)
    return told, {"passed": 0, "failed": 1, "ungraded": 3}[seen.outcome]


def _graded(
    desk: Desk, session: Session, engine: Engine, source: bytes, *, attempt: str, width: int, color: bool
) -> tuple[str, int, Session]:
    from attn_kata.report import terminal

    report = engine.grade(session.kata, source, attempt=attempt, seed=session.seed)
    session = control.ran(desk, session.id, source, outcome=report.outcome)
    desk.store.keep_report(session.id, session.stage, session.kept[session.stage], report.to_dict())
    told, code = terminal.render(report, width=width, color=color, advice=False).rstrip(), report.exit_code
    if report.outcome != "ungraded":
        again, lost = _earlier(desk, session, engine, source, attempt=attempt)
        told, code = told + again, code or int(lost)
    if not report.passed:
        told += f"\n\nStuck: attn-kata hint {session.kata}"  # hints are for coached sessions only
    return told, code, session


def _earlier(desk: Desk, session: Session, engine: Engine, source: bytes, *, attempt: str) -> tuple[str, bool]:
    """A line for each earlier part of a file that grows, asked again; and whether something of them is lost."""
    from attn_kata.interview import dimensions
    from attn_kata.interview.review import Earlier

    said, lost = "", False
    for part in chain(session.stages, session.stage)[:-1]:
        slug = session.stages[part].kata
        report = engine.grade(slug, source, attempt=attempt, seed=session.seed)
        desk.store.keep_report(session.id, part, session.kept[session.stage], report.to_dict())
        lost = lost or not report.passed
        said += "\n" + words.wrapped(dimensions.asked_again(session.kata, Earlier(kata=slug, report=report)), rest="  ")
    return said and f"\n{said}", lost
