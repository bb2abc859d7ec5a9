"""Partner mode, the interviewer's side: `attn-kata interview host`, at a prompt in a terminal of its own.

The candidate sits at `attn-kata interview sit`, on the same session. Here the hidden properties are shown for every
version that is saved, with what breaks them; hints can be given, questions asked, and a rubric filled in.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attn_kata.errors import UsageError
from attn_kata.interview import content, control, moments, partner, timeline, words
from attn_kata.interview.control import Desk
from attn_kata.interview.session import Session
from attn_kata.report.model import Report
from attn_kata.report.plain import one_line

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

RUBRIC = ("communication", "problem-solving", "code", "testing", "depth")
LOOK_SECONDS = 1.0
LONGEST_NOTE = 1_000
_MOST_NAMES = 6
HELP = f"""\
  look                 hidden properties of the newest version, and what breaks them
  code                 the code as it is now
  hint                 give the candidate the next hint
  questions            questions to ask, with their answers
  rate LINE 1-4 NOTE   your score for a line of the rubric: {", ".join(RUBRIC)}
  note TEXT            a note, for the scorecard
  status               the clock, the rounds, and your rubric
  quit                 leave; the session goes on"""


@dataclass(kw_only=True)
class Host:
    """The interviewer at a session."""

    desk: Desk
    number: int
    engines: Callable[[], AbstractContextManager[Engine]]
    emit: Callable[[str], None]
    warn: Callable[[str], None]
    columns: Callable[[], int]  # the terminal's, which may change
    _stack: ExitStack = field(default_factory=ExitStack)
    _engine: Engine | None = None
    _seen: tuple[int, str] | None = None  # the stage and the version that was shown last
    _told: int = 0  # the event that was told last

    def run(self) -> None:
        """Until the session or the input ends."""
        with self._stack:
            session = self.desk.store.load(self.number)
            self._told = session.events[-1].number
            self._says(HELP)
            self._says(f"\nYou host {session.name}. The candidate types: attn-kata interview sit")
            while not session.over:
                typed = self._line("\nhost> ")
                if typed is None or typed in ("quit", "q"):
                    self._says("You left. The session goes on. To come back: attn-kata interview host")
                    return
                try:
                    self._do(typed)
                except UsageError as problem:
                    self.warn(words.laid_out(_refusal(problem), self.columns()))
                session = self.desk.store.load(self.number)
            self._says(f"{session.name} is over. To see it: attn-kata interview show {session.id}")

    def _do(self, typed: str) -> None:
        session = control.tick(self.desk, self.number).session
        word, _, rest = typed.partition(" ")
        if word in ("look", ""):
            self._says(self.look(session))
        elif word == "code":
            self._says(self._code(session))
        elif word == "hint":
            session = partner.give_hint(self.desk, self.number)
            self._says(f"Given: {words.hints(session)[-1]}")
        elif word == "questions":
            self._says(_questions(session))
        elif word == "rate":
            self._rate(rest)
        elif word == "note":
            if not rest.strip():
                raise UsageError("The note is empty.", next_step="note TEXT")
            partner.note(self.desk, self.number, rest.strip()[:LONGEST_NOTE])
            self._says("Noted.")
        elif word == "status":
            status = words.status(session, moments.read(self.desk.clock))
            self._says(status.replace("\nNext: ", "\nThe candidate's next step: "))
            self._says("\n".join(_rubric(session)))
        elif word == "help":
            self._says(HELP)
        else:
            raise UsageError(f"'{word}' is not a command here.", next_step="help shows them")

    def _says(self, text: str) -> None:
        self.emit(words.laid_out(text, self.columns()))

    def look(self, session: Session) -> str:
        """The hidden properties of the newest version, one line each for those that do not hold."""
        if not session.round.written or session.stage not in session.kept:
            return f"There is no code in this round yet: {words.STATES[session.state]}."
        report = self._graded(session, session.stage, session.kept[session.stage])
        lines = [_summary(report)]
        lines += [
            f"  {found.property}: {one_line(found.message or found.outcome, most=160)}"
            for found in report.findings
            if found.outcome in ("failed", "errored")
        ]
        for one in report.diagnosis[:1]:
            lines += [
                f"  {mistake.title}" + (f" (line {mistake.line})" if mistake.line else "") for mistake in one.mistakes
            ]
        return "\n".join(lines)

    def _code(self, session: Session) -> str:
        if session.stage not in session.kept:
            return "There is no code in this round yet."
        code = timeline.as_text(self.desk.store.source(session.id, session.kept[session.stage]))
        return "\n".join(f"{number:>4}  {line}".rstrip() for number, line in enumerate(code.splitlines(), 1))

    def _rate(self, rest: str) -> None:
        line, _, more = rest.strip().partition(" ")
        score, _, said = more.strip().partition(" ")
        if line not in RUBRIC:
            raise UsageError(f"'{line}' is not a line of the rubric.", next_step=f"The lines: {', '.join(RUBRIC)}")
        if score not in ("1", "2", "3", "4"):
            raise UsageError(f"'{score}' is not a score.", next_step=f"Give a number from 1 to 4: rate {line} 3 NOTE")
        partner.rate(self.desk, self.number, line, int(score), said.strip()[:LONGEST_NOTE])
        self._says(f"{line}: {score} of 4")

    def _graded(self, session: Session, stage: int, digest: str) -> Report:
        kept = self.desk.store.reports(session.id).get((stage, digest))
        if kept is not None:
            return Report.from_dict(kept)
        slug = session.stages[stage].kata
        if self._engine is None:
            self._engine = self._stack.enter_context(self.engines())
        source = self.desk.store.source(session.id, digest)
        report = self._engine.grade(slug, source, attempt=f"{slug}.py", seed=session.seed)
        self.desk.store.keep_report(session.id, stage, digest, report.to_dict())
        return report

    def _line(self, prompt: str) -> str | None:
        ahead = sys.stdin.isatty() and bool(select.select([sys.stdin], [], [], 0)[0])
        sys.stdout.write(f"{prompt}\n" if ahead else prompt)  # the terminal showed what was typed, and its end, before
        sys.stdout.flush()
        if sys.stdin.isatty():
            while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
                if self._news():
                    sys.stdout.write(prompt)
                    sys.stdout.flush()
                if self.desk.store.load(self.number).over:
                    return ""
        line = sys.stdin.readline()
        return line.strip() if line else None

    def _news(self) -> bool:
        """Tell what the candidate did since the last look, and how the newest version stands."""
        session = control.tick(self.desk, self.number).session
        new = [one for one in timeline.told(session) if one[0] > self._told]
        self._told = session.events[-1].number
        for _, at, says in new:
            self._says(f"\n{moments.clock_text(at)}  {says}")
        now = (session.stage, session.kept.get(session.stage, ""))
        if session.state == "coding" and now[1] and now != self._seen:
            self._seen = now
            self._says(f"  {_summary(self._graded(session, *now))}")
            return True
        return bool(new)


def _refusal(problem: UsageError) -> str:
    step = problem.next_step or ""
    if "attn-kata interview" in step:  # it would begin, run or hand in what is the candidate's
        step = f"Only the candidate does this: {step}"
    return f"{problem.what}\n{step}".rstrip()


def _summary(report: Report) -> str:
    if report.ungraded_because:
        return f"ungraded: {report.ungraded_because}"
    core = [one for one in report.findings if one.tier == "core"]
    held = sum(1 for one in core if one.outcome == "passed")
    fails = [one.property for one in core if one.outcome in ("failed", "errored")]
    more = ", …" if len(fails) > _MOST_NAMES else ""
    broken = f"; fails: {', '.join(fails[:_MOST_NAMES])}{more}" if fails else ""
    return f"{held} of {len(core)} core properties hold{broken}"


def _questions(session: Session) -> str:
    slug = session.kata or next((one.kata for one in reversed(session.stages) if one.kata), "")
    known: content.Content = content.of_kata(slug)
    lines = ["The candidate should ask:"]
    lines += [f"  {one.ask} -> {one.answer}" for one in known.questions if one.matters]
    lines.append("You can ask:")
    for one in known.follow_ups:
        if one.kind == "free":
            lines.append(f"  {one.ask}")
            lines += [f"    - {point}" for point in one.points]
    return "\n".join(lines)


def _rubric(session: Session) -> list[str]:
    def line(name: str, rating: Any) -> str:
        return f"  {name:<16} {rating['score']} of 4  {rating['note']}" if rating else f"  {name:<16} -"

    return ["Your rubric:", *(line(name, session.ratings.get(name)) for name in RUBRIC)]
