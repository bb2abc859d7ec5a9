'''What an interviewer brings for one kata: `katas/<slug>/interview.toml`, read strictly.

The task itself is the contract without what it marks as silent (contract.py): `prompt.md` beside it.

The format. Every key is required unless marked optional; an unknown one is an error that names file and key:

    [[question]]                    # three or more: what the candidate may ask; shown in a mixed order
    ask = "..."
    topics = ["mask meaning"]       # optional: what its answer tells: names in topics.toml, or others; each once in a kata
    wordings = ["...", "..."]       # five or more: the same question as people type it
    answer = "..."
    matters = true                  # whether a good candidate asks it
    settles = "what True in the mask means"    # only where it matters: a point that prompt.md marks as silent

    [example]                       # the worked example: seen by the candidate, run by the public smoke check
    code = """..."""                # Python with torch, nn and the entry points in scope; leaves a tensor in `out`
    expected = [[...], [...]]       # the value of out, compared to 1e-4
    says = "..."                    # what to see in it; lines of at most 78 characters

    [[follow_up]]                   # three or more, one of each kind at least
    kind = "numeric"
    ask = "... {T} ..."             # names in braces are the drawn numbers
    formula = "score_bytes"         # a name in formulas.py ...
    draw = { T = [1024, 4096] }     # optional: one of each list is drawn, by the session's seed
    fixed = { size = 2 }            # optional: the formula's other numbers
    answer = 3.0                    # ... or, instead of these three, the number itself
    unit = "bytes"                  # optional: what the answer is counted in
    tolerance = 0.02                # relative; an answer within it is right
    explain = "..."                 # shown in the review; may use {T} and {answer}

    [[follow_up]]
    kind = "choice"
    ask = "..."
    options = ["...", "..."]        # two or more
    answer = 2                      # the number of the right one, from 1
    explain = "..."

    [[follow_up]]
    kind = "free"                   # answered in words, then ticked by the candidate against the points
    ask = "..."
    points = ["...", "..."]         # two or more: what a model answer says
    source = "..."                  # where to read it: a paper or a library

    [[follow_up]]
    kind = "derive"                 # optional: like "free", with the same keys; asked in a derive round alone
'''

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from attn_kata import contract, resources
from attn_kata.errors import KataFileError
from attn_kata.interview import formulas
from attn_kata.tables import Table

LEAST_WORDINGS = 5


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the candidate may ask. `wordings` say the same in other words.

    `settles` is the silent point; empty where the question does not matter.
    """

    ask: str
    answer: str
    matters: bool
    settles: str
    topics: tuple[str, ...] = ()
    wordings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkedExample:
    """Code that leaves its result in `out`, and what that has to be."""

    code: str
    expected: list[Any]
    says: str


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """A question after the code. What its kind does not have is empty."""

    kind: Literal["numeric", "choice", "free", "derive"]
    ask: str
    explain: str = ""
    formula: str = ""
    draw: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, float]
    answer: float = 0.0  # numeric without a formula: the number; choice: the right option, from 1
    unit: str = ""
    tolerance: float = 0.0
    options: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Content:
    """One kata's interview. `task` is the briefing, `silent` what it leaves open on purpose."""

    task: str
    silent: tuple[str, ...]
    questions: tuple[Question, ...]
    example: WorkedExample
    follow_ups: tuple[FollowUp, ...]


@cache
def of_kata(slug: str) -> Content:
    """The interview of a kata. Raises KataFileError."""
    return load(resources.katas_folder() / slug / "interview.toml")


def load(file: Path) -> Content:
    """The interview in `file`; its task is of the contract beside it. Raises KataFileError for a key that does not fit."""
    table, asked = Table.of_file(file), contract.load(file.with_name("prompt.md"))
    content = Content(
        task=asked.told,
        silent=asked.silent,
        questions=_mixed(tuple(_question(question) for question in table.tables("question", at_least=3))),
        example=_example(table.table("example")),
        follow_ups=tuple(_follow_up(follow_up) for follow_up in table.tables("follow_up", at_least=3)),
    )
    table.nothing_else()
    if not content.silent:
        raise KataFileError(f"{file.with_name('prompt.md')}: no part is marked '<!-- silent: POINT -->'.")
    topics = [topic for question in content.questions for topic in question.topics]
    if len(set(topics)) < len(topics):
        raise table.wrong("question", f"has the topic '{max(topics, key=topics.count)}' twice")
    settled = {question.settles for question in content.questions if question.matters}
    for point in sorted(settled - set(content.silent)):
        raise table.wrong("question", f"settles '{point}', which prompt.md does not mark as silent")
    for point in content.silent:
        if point not in settled:
            raise table.wrong("question", f"none settles '{point}', which prompt.md marks as silent")
    if not {follow_up.kind for follow_up in content.follow_ups} >= {"numeric", "choice", "free"}:
        raise table.wrong("follow_up", "must have each kind at least once: numeric, choice and free")
    return content


def _lines(table: Table, key: str) -> str:
    text = table.text(key)
    if max(map(len, text.splitlines())) > contract.LONGEST_TOLD:
        raise table.wrong(key, f"has a line of more than {contract.LONGEST_TOLD} characters")
    return text


def _mixed(questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """In an order that says nothing about which ones matter, and stays the same."""
    return tuple(sorted(questions, key=lambda question: hashlib.sha256(question.ask.encode()).digest()))


def _question(table: Table) -> Question:
    matters = table.truth("matters")
    question = Question(
        ask=table.text("ask"),
        answer=table.text("answer"),
        matters=matters,
        settles=table.text("settles") if matters else "",
        topics=table.texts("topics", at_least=1) if table.has("topics") else (),
        wordings=table.texts("wordings", at_least=LEAST_WORDINGS) if table.has("wordings") else (),
    )
    table.nothing_else()
    return question


def _example(table: Table) -> WorkedExample:
    example = WorkedExample(
        code=_lines(table, "code"), expected=table.nested_numbers("expected"), says=_lines(table, "says")
    )
    table.nothing_else()
    try:
        compile(example.code, "example", "exec")
    except SyntaxError as problem:
        raise table.wrong("code", f"is not Python: {problem}") from problem
    return example


def _follow_up(table: Table) -> FollowUp:
    kind = table.text("kind")
    if kind == "numeric":
        follow_up = _numeric(table)
    elif kind == "choice":
        options = table.texts("options", at_least=2)
        answer = table.number("answer", least=1)
        if answer not in range(1, len(options) + 1):
            raise table.wrong("answer", f"must be the number of an option, from 1 to {len(options)}")
        follow_up = FollowUp(
            kind="choice",
            ask=table.text("ask"),
            explain=table.text("explain"),
            options=options,
            answer=answer,
            draw={},
            fixed={},
        )
    elif kind in ("free", "derive"):
        follow_up = FollowUp(
            kind="free" if kind == "free" else "derive",
            ask=table.text("ask"),
            points=table.texts("points", at_least=2),
            source=table.text("source"),
            draw={},
            fixed={},
        )
    else:
        raise table.wrong("kind", f"must be 'numeric', 'choice', 'free' or 'derive', not '{kind}'")
    table.nothing_else()
    return follow_up


def _numeric(table: Table) -> FollowUp:
    drawn, fixed = table.table("draw"), table.table("fixed")
    draw = {name: drawn.whole_numbers(name) for name in drawn.names()}
    rest = {name: fixed.number(name) for name in fixed.names()}
    by_formula = table.has("formula")
    formula = table.text("formula") if by_formula else ""
    if by_formula:
        if formula not in formulas.FORMULAS:
            raise table.wrong("formula", f"is no formula of formulas.py: '{formula}'")
        if {*draw, *rest} != formulas.needs(formula) or set(draw) & set(rest):
            needed = ", ".join(sorted(formulas.needs(formula)))
            raise table.wrong("formula", f"needs exactly these in draw and fixed together: {needed}")
    elif draw or rest:
        raise table.wrong("draw", "needs a formula")
    follow_up = FollowUp(
        kind="numeric",
        ask=table.text("ask"),
        explain=table.text("explain"),
        formula=formula,
        draw=draw,
        fixed=rest,
        answer=0.0 if by_formula else table.number("answer"),
        unit=table.text("unit", default=""),
        tolerance=table.number("tolerance", least=1e-9),
    )
    for key, known in (("ask", {*draw}), ("explain", {*draw, "answer"})):
        unknown = _placeholders(table, key) - known
        if unknown:
            raise table.wrong(key, f"names '{min(unknown)}' in braces, which is not drawn")
    return follow_up


def _placeholders(table: Table, key: str) -> set[str]:
    try:
        return {name for _, name, _, _ in string.Formatter().parse(table.text(key)) if name is not None}
    except ValueError as problem:
        raise table.wrong(key, f"has an odd brace: {problem}") from problem
