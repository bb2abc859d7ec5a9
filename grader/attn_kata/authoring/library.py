"""What the files of a kata can name: the stages of a pipeline, the ids of mistakes, the formulas of numeric follow-ups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping

Lines = Iterator[tuple[str, str]]  # a name, and one sentence about it


def stages() -> Lines:
    """The stages for mistakes.py, right and wrong. Needs torch."""
    from attn_kata.diagnosis import stages as library

    for name, value in sorted(vars(library).items()):
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__.startswith(library.__name__):
            yield name, _first_line(value)


def mistakes() -> Lines:
    """The ids that have words already."""
    from attn_kata.diagnosis import catalogue

    for id, entry in catalogue.load().items():
        yield id, entry.title


def formulas() -> Lines:
    """The formulas for interview.toml, with the numbers that each needs."""
    from attn_kata.interview import formulas as library

    for name, formula in library.FORMULAS.items():
        yield f"{name}({', '.join(inspect.signature(formula).parameters)})", _first_line(formula)


PARTS: Mapping[str, Callable[[], Lines]] = {"stages": stages, "mistakes": mistakes, "formulas": formulas}


def _first_line(function: Callable[..., object]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]
