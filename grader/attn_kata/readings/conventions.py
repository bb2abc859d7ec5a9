"""Conventions of code by other names that the contract calls mistakes: ReLU for GELU, a block that is not causal.

A kata's `reading.toml` lists them. Where the words of a source say one, both ways are asked, and a note in the report
names the mistake that it would be by the contract.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # which loads torch; `inference` must not
    from attn_kata.diagnosis.pipeline import Pipeline, Variant


MOST_WAYS = 12  # sets of conventions that are asked


@dataclass(frozen=True, kw_only=True)
class Convention:
    """One of them. `edits`, old text and new, make the reference follow it; every place of an old text is changed."""

    mistake: str
    words: str
    edits: tuple[tuple[str, str], ...]
    variant: int = 0  # of the mistake's variants
    says: str = ""  # a regular expression that the source must have; "" for none
    unless: str = ""  # one that it must not have
    surely: str = ""  # one that says it, whatever else the source has
    unless_built: str = ""  # what the constructor must not be given: then the contract's value is chosen, not a default
    leaves_out: tuple[str, ...] = ()
    one_feature: bool = True  # whether it gives numbers for a width of 1
    needs: str = (
        ""  # what alone follows it, and always follows one of these: "gate", an mlp with one, or "rms", such norms
    )
    rare: bool = False  # whether code is taken to follow it only where nothing else explains it as well

    def is_said(self, text: str) -> bool:
        """Whether the words of a source say it."""
        if self.surely and re.search(self.surely, text) is not None:
            return True
        without = self.unless and re.search(self.unless, text)
        return not without and (not self.says or re.search(self.says, text) is not None)

    def of(self, pipeline: Pipeline) -> Variant | None:
        """The variant of a pipeline that makes it, or None where the pipeline knows none."""
        every = [one for one in pipeline.variants if one.id == self.mistake]
        return every[self.variant] if len(every) > self.variant else None


def ways(known: dict[str, Convention], text: str, has: dict[str, bool]) -> list[tuple[str, ...]]:
    """The sets of conventions that a source may follow, the fullest first, and those with a rare one behind them.

    Those of one mistake exclude each other. `has`: what the code has or has not, for which some conventions are.
    """
    found: list[tuple[str, ...]] = [()]
    for name, one in known.items():
        if one.is_said(text):
            found = [(*way, name) for way in found if not any(exclude(known[each], one) for each in way)] + found
    fitting = [way for way in found if _fits(known, way, has)]
    return sorted(fitting or found, key=lambda way: (any(known[name].rare for name in way), -len(way)))[:MOST_WAYS]


def _fits(known: dict[str, Convention], way: tuple[str, ...], has: dict[str, bool]) -> bool:
    """Whether a set has one of the conventions for all that the code has, and none for what it has not."""
    return all(any(known[name].needs == what for name in way) == there for what, there in has.items())


def exclude(one: Convention, other: Convention) -> bool:
    """Whether a source can follow only one of the two: they change the same place of the reference."""
    return any(old in another or another in old for old, _ in one.edits for another, _ in other.edits)


def followed(pipeline: Pipeline, conventions: Iterable[Convention]) -> Pipeline:
    """The pipeline with these conventions in the place of its own stages."""
    for one in conventions:
        variant = one.of(pipeline)
        if variant is None:
            continue
        kept = tuple(each for each in pipeline.variants if each is not variant)
        pipeline = replace(pipeline, stages={**pipeline.stages, **variant.stages}, variants=kept)
    return pipeline


def reference(source: str, conventions: Iterable[Convention]) -> str:
    """The source of the reference with these conventions. Raises ValueError where an edit does not fit."""
    for old, new in (edit for one in conventions for edit in one.edits):
        if old not in source:
            raise ValueError(f"the reference has nowhere {old!r}")
        source = source.replace(old, new)
    return source
