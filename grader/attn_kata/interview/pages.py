"""A reviewed session as plain values, and its formats: terminal, JSON, Markdown, one HTML page.

`review.schema.json` describes the result of `body`; every format reads only that. All texts in it are safe to print:
text from an attempt has no control characters, and the HTML template escapes everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from attn_kata import quantities, templates
from attn_kata.interview import content, moments, practising, replay
from attn_kata.interview.plans import minutes_phrase
from attn_kata.interview.review import Review, Taken
from attn_kata.interview.scorecard import Scorecard, Spread
from attn_kata.interview.session import STATE_NAMES
from attn_kata.report.plain import one_line, plain, unicode
from attn_kata.rounds.spoiled import Bug

SCHEMA = 1
FORMATS = ("terminal", "json", "markdown", "html")


def body(review: Review, card: Scorecard | None, spread: Sequence[Spread]) -> dict[str, Any]:
    """Everything to show of a session. `card` is None when the session ended early."""
    session = review.session
    stages = [
        {
            "kata": one.kata,
            "title": one.title,
            "minutes": one.minutes,
            "begun": place in session.begun,
            "round": one.kind,
        }
        for place, one in enumerate(session.stages)
        if one.timed
    ]
    made: dict[str, Any] = {
        "schema": SCHEMA,
        "interview": {
            "id": session.id,
            "track": session.track,
            "mode": session.mode,
            "state": session.state,
            "started": session.events[0].moment.utc.isoformat(timespec="seconds"),
            "minutes": session.seconds / 60,
            "used_seconds": round(session.used, 1),
            "seed": session.seed,
            "stages": stages,
        },
        "scorecard": card.to_dict() if card is not None else None,
        "spread": [{"name": one.name, "scores": list(one.scores)} for one in spread],
        "practise": list(practising.lines(review)) if card is not None else [],
        "questions": _questions(review),
        "follow_ups": [_follow_up(review, place) for place in range(1, len(session.follow_ups) + 1)],
        "taken": [_taken(one) for one in review.taken],
        "timeline": [asdict(point) for point in review.points],
        "gaps": [asdict(gap) for gap in review.gaps],
    }
    valid: dict[str, Any] = json.loads(unicode(json.dumps(made, ensure_ascii=False)))
    return valid


def as_json(shown: Mapping[str, Any]) -> str:
    """Indented JSON in ASCII."""
    return json.dumps(shown, indent=2, allow_nan=False) + "\n"


def as_markdown(shown: Mapping[str, Any]) -> str:
    """Markdown, to keep with notes."""
    return _render("interview.md.j2", shown, escape=False)


def as_html(shown: Mapping[str, Any]) -> str:
    """One self-contained page: no network, light and dark, printable; its own script plays the saves again."""
    made = replay.of(shown)
    played = {
        "replay": replay.for_page(made) if made.versions else None,
        "replay_script": replay.script(),
        "replay_policy": replay.script_hash(),
        "replay_speeds": replay.SPEEDS,
        "replay_speed": replay.SPEED,
        "replay_lanes": replay.LANES,
    }
    return _render("interview.html.j2", {**shown, **played}, escape=True)


def as_terminal(shown: Mapping[str, Any], *, width: int = 80, color: bool = False) -> str:
    """For a terminal of `width` columns."""
    from attn_kata.interview import terminal

    return terminal.render(shown, width=width, color=color)


def _render(name: str, shown: Mapping[str, Any], *, escape: bool) -> str:
    environment = templates.environment(escape=escape, keep_trailing_newline=True)
    environment.filters.update(
        clock=_signed_clock,
        words=moments.in_words,
        minutes=minutes_phrase,
        number=quantities.text,
        fenced=_fenced,
        inline=_inline,
        findings=_report_lines,
        lines=_diff_lines,
        by_how=_by_how,
        day=_day,
        state=STATE_NAMES.__getitem__,
    )
    return environment.get_template(name).render(**shown)


def _questions(review: Review) -> list[dict[str, Any]]:
    session = review.session
    return [
        {
            "kata": session.stages[stage].kata,
            "ask": question.ask,
            "answer": question.answer,
            "matters": question.matters,
            "asked": (stage, number) in session.asked,
        }
        for stage in session.begun
        if session.stages[stage].kind in ("write", "grow")
        for number, question in enumerate(content.of_kata(session.stages[stage].kata).questions, 1)
    ]


def _follow_up(review: Review, place: int) -> dict[str, Any]:
    put, given = review.session.follow_ups[place - 1], review.session.answers.get(place)
    ticked = review.session.ticks.get(place)
    right_answer: str | None = None
    if put["kind"] == "numeric":
        right_answer = f"{quantities.text(put['answer'])} {put['unit']}".strip()
    elif put["kind"] == "review":
        right_answer = "; ".join(map(_bug, review.session.spoiled[put["stage"]].bugs))
    elif put["kind"] == "choice":
        right_answer = put["options"][put["answer"] - 1]
    return {
        "place": place,
        "kata": put["kata"],
        "kind": put["kind"],
        "ask": put["ask"] + (f"\n\n{put['code']}" if "code" in put else ""),
        "options": put.get("options", []),
        "yours": _yours(put, plain(given["text"])) if given else None,
        "right": given["right"] if given else None,
        "answer": right_answer,
        "explain": put["explain"],
        "points": [
            {"says": says, "ticked": ticked is not None and number in ticked}
            for number, says in enumerate(put.get("points", []), 1)
        ],
        "source": put.get("source", ""),
    }


def _bug(bug: Bug) -> str:
    """`line 12: scale.missing, was 'scores / d ** 0.5'`."""
    lines = f"line{'s' if len(bug.lines) > 1 else ''} {', '.join(map(str, bug.lines))}"
    return f"{lines}: {bug.mistake}, was '{one_line(' … '.join(bug.right), most=200)}'"


def _yours(put: Mapping[str, Any], text: str) -> str:
    """The answer as text; for a choice, the text of the chosen option."""
    options = dict(enumerate(put.get("options", []), 1))
    chosen = options.get(int(text)) if options and text.isascii() and text.isdigit() else None
    return text if chosen is None else str(chosen)


def _taken(one: Taken) -> dict[str, Any]:
    return {
        "kata": one.kata,
        "how": one.how,
        "code": one.source,
        "report": _plain(one.report.to_dict()) if one.report is not None else None,
        "lint": [asdict(finding) for finding in one.lint] if one.lint is not None else None,
        "reference": one.reference,
        "diff": one.diff,
        "earlier": [
            {"kata": part.kata, "report": _plain(part.report.to_dict()) if part.report is not None else None}
            for part in one.earlier
        ],
    }


def _plain(value: Any) -> Any:
    """`value` with every text made safe to print."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {one_line(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _report_lines(report: Mapping[str, Any]) -> list[str]:
    """The findings that do not hold, one line each, and the number of skipped ones."""
    lines = [
        f"{finding['property']}: {one_line(finding['message'] or finding['outcome'], most=300)}"
        for finding in report["findings"]
        if finding["outcome"] in ("failed", "errored")
    ]
    skipped = sum(1 for finding in report["findings"] if finding["outcome"] == "skipped")
    return [*lines, f"{skipped} skipped: a property that they need does not hold"] if skipped else lines


def _diff_lines(diff: str) -> list[tuple[str, str]]:
    """The lines of a diff, each with its kind."""
    kinds = {"+": "added", "-": "gone", "@": "where"}
    return [(kinds.get(line[:1], "same"), line) for line in diff.splitlines()]


def _by_how(flips: Sequence[Mapping[str, str]]) -> list[tuple[str, list[str]]]:
    """The changed properties, grouped by the change."""
    found: dict[str, list[str]] = {}
    for flip in flips:
        found.setdefault(flip["how"], []).append(flip["property"])
    return list(found.items())


def _day(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y-%m-%d, %H:%M UTC")


def _signed_clock(seconds: float) -> str:
    text = moments.clock_text(abs(seconds))
    return f"-{text}" if seconds < 0 and text != "0:00" else text


def _fenced(code: str, language: str = "") -> str:
    """A Markdown block with a fence longer than any in `code`."""
    longest = max((len(ticks) for ticks in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"


def _inline(text: str) -> str:
    """A text escaped for Markdown, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", one_line(text, most=2000))
