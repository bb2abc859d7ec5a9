"""`attn-kata review`: a colleague's attempt to read. Mark what is wrong before anything runs; then see."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from attn_kata import contract
from attn_kata.catalog import Kata
from attn_kata.cli import mock_interview, prompt, rounds
from attn_kata.cli.arguments import kata_argument
from attn_kata.cli.output import color, emit, paragraph, warn, width
from attn_kata.diagnosis import catalogue
from attn_kata.diagnosis.catalogue import Entry
from attn_kata.errors import UsageError
from attn_kata.history import History
from attn_kata.report.model import Report
from attn_kata.rounds import review
from attn_kata.rounds.record import Record
from attn_kata.rounds.review import Found, Mark, Reviewed
from attn_kata.rounds.spoiled import Bug, Spoiled


@click.command("review")
@kata_argument()
@rounds.bugs_option
@click.option(
    "--mark",
    "marks",
    multiple=True,
    metavar="TEXT",
    help="A line and what is wrong there, instead of typing it later: --mark '12 no scale'. Repeatable.",
)
@rounds.options
def command(kata: str | None, bugs: int | None, marks: tuple[str, ...], all_katas: bool, seed: int | None) -> int:
    """Review code that a colleague wrote for KATA: mark the lines that are wrong, and say why.

    The code has one to four known mistakes, and nothing says how many. Then see what you found. The exit code is 0 when you
    found all of them and marked nothing else.
    """
    mock_interview.refuse_while_running("review", "other code to look at")
    drawn = rounds.seed_of(seed)
    if marks and seed is None:
        raise UsageError("--mark needs the code that you marked.", next_step="Name it as before: --seed N")
    found = rounds.kata_of(kata, all_katas, drawn, History(warn))
    spoiled, report = rounds.made(found, seed=drawn, bugs=bugs)
    given = [review.mark(text, spoiled) for text in marks]
    emit(_code(found, spoiled, full=not marks))
    reviewed = review.judge(spoiled, given or _marks(spoiled))
    words = catalogue.load()
    emit(_seen(spoiled, reviewed, words, report))
    unnamed = [
        one.bug.mistake for one in reviewed.found if not (one.named or (one.named is None and _meant(one, words)))
    ]
    wrong = [*(bug.mistake for bug in reviewed.missed), *unnamed, *(f"line {mark.first}" for mark in reviewed.wrong)]
    Record(warn).went(found.slug, "review", wrong)
    again = f"attn-kata review {found.slug}{f' --bugs {bugs}' if bugs else ''} --seed {drawn}"
    emit(f"To mend them instead: {again.replace(' review ', ' hunt ')}")
    return 1 if wrong else 0


def _code(kata: Kata, spoiled: Spoiled, *, full: bool) -> str:
    from attn_kata.report.listing import lines
    from attn_kata.report.page import Page

    page = Page(width=width(), color=color())
    page.line((f"{kata.slug}: {kata.title}", "bold"), f"   (--seed {spoiled.seed})")
    if full:
        page.blank()
        page.drawing(contract.load(kata.prompt).text.split("\n"), indent=0)
    page.section("A colleague's code. It looks right, but it has mistakes.")
    page.code(lines(spoiled.source.encode()), indent=0)
    return "\n".join(page.lines()) + "\n"


def _marks(spoiled: Spoiled) -> list[Mark]:
    """What the person types, a mark in each line, until an empty line or the end of the input."""
    emit(
        "Type a line and what is wrong there, for example: 12 the softmax is over the queries.\nEnter when you are done."
    )
    marks: list[Mark] = []
    while len(marks) < review.MOST_MARKS:
        typed = prompt.line("Line, what is wrong: ")
        if not typed:
            break
        try:
            marks.append(review.mark(typed, spoiled))
        except UsageError as problem:
            warn(f"{problem.what} {problem.next_step or ''}")
    return marks


def _seen(spoiled: Spoiled, reviewed: Reviewed, words: Mapping[str, Entry], report: Report) -> str:
    """What was found and missed, with the mistakes' own words, the lines, and what a run shows."""
    count = len(spoiled.bugs)
    blocks = [f"You found {len(reviewed.found)} of {count} mistake{'' if count == 1 else 's'}."]
    for one in reviewed.found:
        said = {True: "You named it", False: "You named another mistake", None: "You said"}[one.named]
        blocks.append(
            "\n".join([*_mistake("Found", one.bug, spoiled, words), paragraph(f"{said}: {one.mark.said}", "  ")])
        )
    blocks += ["\n".join(_mistake("Missed", bug, spoiled, words)) for bug in reviewed.missed]
    if reviewed.wrong:
        rows = [paragraph(f"line {mark.first}: {mark.said}", "  ") for mark in reviewed.wrong]
        blocks.append("\n".join(["No known mistake there", *rows]))
    failing = [one.property for one in report.findings if one.tier == "core" and one.outcome in ("failed", "errored")]
    blocks.append(paragraph(f"A run shows it: {', '.join(failing)} {'fails' if len(failing) == 1 else 'fail'}."))
    return "\n\n".join(blocks) + "\n"


def _mistake(head: str, bug: Bug, spoiled: Spoiled, words: Mapping[str, Entry]) -> list[str]:
    texts = spoiled.source.splitlines()
    shown = [f"    {number}  {texts[number - 1].strip()}" for number in bug.lines]
    title = words[bug.mistake].title
    explained = paragraph(words[bug.mistake].plain, "  ")
    return [paragraph(f"{head}: {title}  ({bug.mistake})"), *shown, explained]


def _meant(one: Found, words: Mapping[str, Entry]) -> bool:
    """Whether the person says that their own words meant this mistake. In a pipe nobody can say so: the line counts."""
    if not sys.stdin.isatty():
        return True
    title = words[one.bug.mistake].title
    typed = prompt.line(f"You said: {one.mark.said}\nDid you mean '{title}'? [y/n] ")
    return (typed or "").lower() in ("y", "yes")
