"""`attn-kata napkin`: numbers without code, such as bytes, FLOPs and parameters."""

from __future__ import annotations

import random

import click

from attn_kata import catalog
from attn_kata.catalog import Kata
from attn_kata.cli import mock_interview, prompt, rounds, signals
from attn_kata.cli.arguments import kata_argument
from attn_kata.cli.output import emit, paragraph, warn
from attn_kata.errors import UsageError
from attn_kata.history import History
from attn_kata.interview import content, follow_ups
from attn_kata.rounds import napkin
from attn_kata.rounds.napkin import Answer, Question
from attn_kata.rounds.record import Record

MOST = 50


@click.command("napkin")
@kata_argument()
@click.option("--count", type=click.IntRange(1, MOST), default=3, show_default=True, help="How many questions.")
@rounds.options
def command(kata: str | None, count: int, all_katas: bool, seed: int | None) -> int:
    """Ask for numbers about KATA: bytes, FLOPs, parameters. The numbers are drawn anew each time.

    Type an answer as you like: 1_536, 1.3e9, 2^20, 128 KiB, 3 TFLOPs, 33 %. Enter skips a question. The working is shown
    after each. The exit code is 0 when all answers are right.
    """
    mock_interview.refuse_while_running("napkin", "questions with their answers")
    drawn = rounds.seed_of(seed)
    if all_katas and not kata:
        katas = catalog.katas()
    else:
        katas = [rounds.kata_of(kata, all_katas, drawn, History(warn))]
    questions = _questions(katas, seed=drawn, count=count)
    answers: list[Answer | None] = []
    try:
        for number, question in enumerate(questions, 1):
            answer = _asked(question, f"{number} of {len(questions)}, {question.kata}")
            if answer is _END:
                break
            answers.append(answer)
    finally:
        with signals.held():  # what was answered counts, though the rest was not
            _keep(questions, answers)
    right = sum(answer is not None and answer.right for answer in answers)
    again = f"attn-kata napkin {'--all-katas' if all_katas else katas[0].slug}"
    emit(f"{right} of {len(questions)} right. More, with new numbers: {again}")
    return 0 if right == len(questions) else 1


_END = Answer(text="", right=False)


def _questions(katas: list[Kata], *, seed: int, count: int) -> list[Question]:
    """`count` questions about these katas, mixed. A kata that has fewer is asked again, with new numbers."""
    made: list[Question] = []
    round_number = 0
    while len(made) < count:
        pool = [
            napkin.of(drawn)
            for kata in katas
            for drawn in follow_ups.numeric(
                kata.slug, content.of_kata(kata.slug).follow_ups, seed=seed + round_number, count=MOST
            )
        ]
        fresh = [question for question in pool if question.ask not in {one.ask for one in made}]
        made += random.Random(seed + round_number).sample(fresh, len(fresh))
        round_number += 1
        if round_number > MOST:  # so few that even new numbers are the same
            break
    return made[:count]


def _asked(question: Question, head: str) -> Answer | None:
    """One question until it is answered or skipped (None); _END at the end of the input."""
    emit(f"{head}\n{paragraph(question.ask, '  ')}")
    unit = f" in {question.unit}" if question.unit else ""
    while True:
        typed = prompt.line(f"  Answer{unit}: ")
        if typed is None:
            return _END
        try:
            answer = napkin.judge(question, typed) if typed else None
        except UsageError as problem:
            warn(f"  {problem.what} {problem.next_step or ''}")
            continue
        verdict = "Skipped." if answer is None else "Right." if answer.right else f"Not right. {answer.note}".rstrip()
        told = "" if answer is not None and answer.right else f" It is {question.answer_text}."
        emit(f"{paragraph(verdict + told, '  ')}\n{paragraph(question.working, '  ')}\n")
        return answer


def _keep(questions: list[Question], answers: list[Answer | None]) -> None:
    record = Record(warn)
    pairs = list(zip(questions, answers))  # noqa: B905  # the rest was not reached
    for slug in dict.fromkeys(question.kata for question, _ in pairs):
        wrong = [question.ask for question, answer in pairs if question.kata == slug and not (answer and answer.right)]
        record.went(slug, "napkin", wrong)
