"""The texts of a session at a terminal: the briefing, the clock, the questions. For 80 columns, without colour."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable
from datetime import datetime, timedelta

from attn_kata import catalog, contract, workspace
from attn_kata.interview import attempts, content, growing, moments
from attn_kata.interview.moments import Moment
from attn_kata.interview.plans import Plan, minutes_phrase, minutes_text
from attn_kata.interview.rounds import DOES
from attn_kata.interview.session import STATE_NAMES, Session
from attn_kata.report.plain import one_line, plain

WIDTH = 80


def listed_plans(plans: Iterable[Plan]) -> str:
    """The plans to choose from."""
    lines, every = [], list(plans)
    longest = max(len(plan.name) for plan in every)
    for plan in every:
        lines.append(f"  {plan.name:<{longest}} {minutes_text(plan.minutes):>3} min  {plan.shown}")
        lines.append(wrapped(plan.about, " " * (longest + 11)))
    return "\n".join(lines)


def briefing(session: Session) -> str:
    """The task, the worked example, and the questions of the present stage."""
    known, stage = content.of_kata(session.kata), session.stages[session.stage]
    example = known.example
    parts = [f"{_stage_title(session)}, {minutes_phrase(stage.minutes)}", task(session)]
    if session.round.written:
        parts.append("A worked example:\n" + textwrap.indent(f"{example.code}\nout is {example.expected}", "    "))
        parts.append(example.says)
    if may_ask(session):
        parts.append(open_details(session))
    return "\n\n".join(parts)


def open_details(session: Session) -> str:
    """What may be asked: the list where it is shown, and the answers so far."""
    if session.listed:
        return "The task leaves some details open. You may ask:\n" + questions(session)
    own = [number for stage, number in sorted(session.asked) if stage == session.stage]
    told = [wrapped("The task leaves some details open. Ask about them in your own words.")]
    return "\n".join([*told, *(answer(session, number) for number in own)])


def task(session: Session) -> str:
    """What the round asks. Only a task to write leaves details open."""
    slug = session.kata
    if may_ask(session):
        return content.of_kata(slug).task
    asked = contract.load(catalog.find(slug).prompt).text
    return {
        "hunt": f"You get a file that looks right, but it has mistakes. Find them and mend them. What it has to do:\n\n{asked}",
        "review": f"You read a colleague's code, and say which lines are wrong and why. What it has to do:\n\n{asked}",
        "napkin": "You answer questions about numbers: bytes, FLOPs, parameters. There is no code to write.",
        "derive": "You derive a formula, step by step. Plain text is enough. There is no code to write.",
    }[session.round.kind]


def may_ask(session: Session) -> bool:
    """Whether this round has a task with open details."""
    return session.round.kind in ("write", "grow")


def questions(session: Session) -> str:
    """The clarifying questions, with the answers to those that were asked."""
    lines = []
    for number, question in enumerate(content.of_kata(session.kata).questions, 1):
        lines.append(wrapped(f"{number}. {question.ask}", "  ", "     "))
        if (session.stage, number) in session.asked:
            lines.append(wrapped(f"-> {question.answer}", "     ", "        "))
    return "\n".join(lines)


def answer(session: Session, question: int) -> str:
    """The answer to one clarifying question."""
    asked = content.of_kata(session.kata).questions[question - 1]
    ask = f"{question}. {asked.ask}" if session.listed else asked.ask
    return wrapped(ask, "  ", "     ") + "\n" + wrapped(f"-> {asked.answer}", "     ", "        ")


def follow_ups(session: Session) -> str:
    """Every question of this round, with your answer. Only the review says what is right or wrong."""
    return "\n".join(follow_up(session, place) for place in session.places)


def follow_up(session: Session, place: int) -> str:
    """One follow-up question. A free question shows its points after the answer."""
    question, given = session.follow_ups[place - 1], session.answers.get(place)
    unit = f" (in {question['unit']})" if question.get("unit") else ""
    lines = [wrapped(f"{place}. {question['ask']}{unit}", "  ", "     ")]
    if question["kind"] == "review":
        lines.append(f"\n{textwrap.indent(question['code'], '  ')}\n")
    for number, option in enumerate(question.get("options", ()), 1):
        lines.append(wrapped(f"{number}) {option}", "     ", "        "))
    if question["kind"] == "free":
        lines.append("     (in your own words)")
    if given is not None:
        lines.append(wrapped(f"yours: {one_line(plain(given['text']))}", "     ", "            "))
        if question["kind"] == "free":
            lines.append(points(session, place))
    return "\n".join(lines)


def points(session: Session, place: int) -> str:
    """The points of a model answer, with ticks."""
    question, ticked = session.follow_ups[place - 1], session.ticks.get(place, ())
    lines = ["     A model answer has these points. Which did yours have?"]
    for number, point in enumerate(question["points"], 1):
        lines.append(wrapped(f"[{'x' if number in ticked else ' '}] {number}. {point}", "     ", "            "))
    return "\n".join(lines)


def status(session: Session, now: Moment) -> str:
    """The state of the session, and the next command."""
    lines = [f"Interview {session.id}: {session.track} ({session.mode}), {STATES[session.state]}"]
    for place, one in enumerate(session.stages):
        mark = ">" if place == session.stage and not session.over else " "
        how = "submitted" if session.finals.get(place) else "started" if place in session.files else ""
        time = minutes_phrase(one.minutes) if one.timed else "off the clock"
        lines.append(f"{mark} {place + 1}. {one.kind:<6}  {one.kata:<20} {time:>13}  {how}".rstrip())
    if session.state in ("coding", "submitted", "time_up") or session.clock_runs:
        lines.append(clock(session, now))
    lines += [wrapped(f"Hint of your interviewer: {one}") for one in hints(session)]
    if session.state == "coding" and session.file is not None:
        found = attempts.written(session.file)
        if found.source is not None:
            lines.append(f"Your file: {workspace.shown(session.file)}")
        else:
            lines += [wrapped(f"{found.why}. What you saved before is kept."), wrapped(found.next_step)]
    return "\n".join([*lines, NEXT[session.state] if not session.paused else PAUSED])


def hints(session: Session) -> list[str]:
    """The hints that the interviewer gave in this stage."""
    every = catalog.find(session.kata).hints if session.kata else ()
    return [every[number - 1] for stage, number in session.hints if stage == session.stage]


def clock(session: Session, now: Moment) -> str:
    """`Left: 43:12 of 55:00, until 15:04`; the clock of the whole session, not of a stage."""
    left = session.left(now)
    of = moments.clock_text(session.seconds)
    if session.paused:
        return f"Left: {moments.clock_text(left)} of {of}, paused"
    if left <= 0 or session.state == "time_up":
        return f"The time is up ({of})."
    if not session.clock_runs:
        return f"Left: {moments.clock_text(left)} of {of}; the clock has stopped"
    until = datetime.fromtimestamp(now.wall) + timedelta(seconds=left)
    return f"Left: {moments.clock_text(left)} of {of}, until {until:%H:%M}"


def strays(session: Session) -> str:
    """Names the files with text that a room could not save in this stage's file. The first message may have been missed."""
    found = attempts.strays(session.file) if session.file is not None else []
    if not found:
        return ""
    return f"Text that a room could not save in your file is in: {', '.join(repr(workspace.shown(path)) for path in found)}."


def coming(session: Session) -> str:
    """What comes after this round: `Padding mask, the next part, in the same file`; `the review` after the last."""
    place = session.next_stage
    if place is None:
        return "the review"
    one = session.stages[place]
    return DOES[one.kind] if not one.kata else f"{catalog.find(one.kata).title}, {DOES[one.kind]}"


def new_part(session: Session) -> str:
    """Where the file of a grow round is, and what is in it; "" in other rounds."""
    began = next((one for one in reversed(session.events) if one.kind == "advanced"), None)
    how = began.data.get("how", "") if began is not None and began.stage == session.stage else ""
    return growing.SAYS.get(how, "")


def coding(session: Session, now: Moment) -> str:
    """What to do while the clock runs."""
    assert session.file is not None
    part = new_part(session)
    return (
        f"{_stage_title(session)}\n"
        + (f"{wrapped(part)}\n" if part else "")
        + f"Your file: {workspace.shown(session.file)}  (the task and the signatures are in it)\n"
        f"{clock(session, now)}\n\n"
        "Write in your own editor, and save. Then:\n"
        "  attn-kata interview run       show the worked example, shapes and your prints\n"
        "  attn-kata interview run --own run the file with your own tests, as python would\n"
        "  attn-kata interview submit    hand it in; the hidden tests run afterwards\n"
        "  attn-kata interview ask WORDS ask a question\n"
        "When the time is up, your file is taken as it is on the disk."
    )


def listing(sessions: Iterable[Session], overall: dict[int, str]) -> str:
    """Every session in one line."""
    lines = []
    for session in sessions:
        when = session.events[0].moment.utc.astimezone()
        judged = overall.get(session.id, "")
        what = f"{session.track:<24} {session.mode:<8} {STATE_NAMES[session.state]:<19} {judged}"
        lines.append(f"{session.id:>4}  {when:%Y-%m-%d %H:%M}  {what}".rstrip())
    return "\n".join(lines) or "No interviews yet. Start one: attn-kata interview start"


def listing_json(sessions: Iterable[Session], overall: dict[int, str]) -> str:
    """The same for scripts."""
    rows = [
        {
            "id": session.id,
            "started": session.events[0].moment.utc.isoformat(timespec="seconds"),
            "track": session.track,
            "katas": [one.kata for one in session.stages if one.kata],
            "mode": session.mode,
            "state": session.state,
            "minutes": session.seconds / 60,
            "overall": overall.get(session.id),
        }
        for session in sessions
    ]
    return json.dumps(rows, indent=2)


def wrapped(text: str, first: str = "", rest: str | None = None) -> str:
    """`text` in lines of at most 80 columns."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=first if rest is None else rest, break_on_hyphens=False
    )


def fitted(line: str, width: int) -> str:
    """`line`, wrapped if it is too long."""
    return line if len(line) <= width else textwrap.fill(line, width, break_on_hyphens=False)


def laid_out(text: str, width: int) -> str:
    """`text` with its long lines wrapped at words: under their second column if they have one, else indented."""
    return "\n".join(_laid_out(line, width) for line in text.split("\n"))


def _laid_out(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = len(line) - len(line.lstrip())
    columns = re.compile(r"\S {2,}(?=\S)").search(line)
    hang = columns.end() if columns else indent + 2 if indent else 0
    head = []
    if columns and hang > width // 2:  # too little room beside the first column
        head, line, hang = [line[: columns.start() + 1]], " " * (indent + 4) + line[hang:], indent + 4
    wrapped = textwrap.fill(
        line, width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False, expand_tabs=False
    )
    return "\n".join([*head, wrapped])


def _stage_title(session: Session) -> str:
    count = sum(1 for one in session.stages if one.timed)
    stage = f"Stage {session.stage + 1} of {count}: " if count > 1 else ""
    return f"{stage}{session.round.title}"


STATES = {**STATE_NAMES, "briefing": "briefing (the clock does not run)"}
PAUSED = "Next: attn-kata interview resume"
NEXT = {
    "ready": "Next: attn-kata interview next",
    "briefing": "Next: attn-kata interview ask WORDS, then attn-kata interview next, which starts the clock",
    "coding": "Next: write, attn-kata interview run, and finally attn-kata interview submit",
    "submitted": "Next: attn-kata interview next",
    "time_up": "Next: attn-kata interview next",
    "follow_up": "Next: attn-kata interview answer N TEXT, and finally attn-kata interview next",
    "review": "Next: attn-kata interview show, then attn-kata interview next, which closes it",
    "closed": "Next: attn-kata interview start",
    "abandoned": "Next: attn-kata interview start",
}
