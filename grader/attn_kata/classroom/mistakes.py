"""What a class needs of the diagnosis: the ids of the mistakes, and their words without numbers. Loads no torch."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from attn_kata.diagnosis import catalogue
from attn_kata.report.model import NamedMistake, Report


def ids() -> tuple[str, ...]:
    """The id of every mistake that the diagnosis knows."""
    return tuple(_entries())


def in_our_words(report: Report) -> Report:
    """The report with mistakes as the catalogue has them.

    They have no sizes of a hidden case, and no names that code by other names has given its parameters while it ran.
    """
    diagnosis = [replace(found, mistakes=[_plain(one) for one in found.mistakes]) for found in report.diagnosis]
    return replace(report, diagnosis=diagnosis)


def _plain(mistake: NamedMistake) -> NamedMistake:
    entry = _entries().get(mistake.id)
    if entry is None:
        return replace(mistake, explanation=mistake.title)
    return replace(mistake, title=entry.title, explanation=entry.plain, question=entry.question)


@cache
def _entries() -> dict[str, catalogue.Entry]:
    return catalogue.load()
