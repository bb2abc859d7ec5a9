"""Why an edge property fails where all core properties hold: a note, because the attempt passes."""

from __future__ import annotations

import re

from attn_kata.diagnosis import catalogue, lines
from attn_kata.properties.failures import AttemptRaised, PropertyFailed

_EMPTY = ("empty_rows", "nothing_to_attend_to")


def notes(failures: dict[str, PropertyFailed], source: bytes) -> list[str]:
    """One sentence for each of the failed edge properties: the mistake with its line, or that none was seen.

    Nothing runs: the values are right, so the source and the failures are all that there is to see.
    """
    entries = catalogue.load()
    said = []
    for name, failure in failures.items():
        id = _mistake(name, failure, source)
        if id is None:
            said.append(f"no known mistake that breaks {name} was seen in the code")
            continue
        line = lines.find(id, source)
        where = f", line {line}" if line is not None else ""
        said.append(f"{name}: {entries[id].title} ({id}){where}")
    return said


def _mistake(name: str, failure: PropertyFailed, source: bytes) -> str | None:
    not_finite = re.search(r"\b(?:nan|inf)\b", failure.message) is not None
    raised = isinstance(failure, AttemptRaised)
    if name in _EMPTY:
        return "mask.empty_row"
    if name == "half_precision":
        if raised and re.search(r"same dtype|scalar type|same data type", failure.message):
            narrows = re.search(rb"\.float\(\)|float32|FloatTensor", source)
            return "numerics.forced_float32" if narrows else "numerics.default_dtype"
        overflows = not_finite or (raised and "overflow" in failure.message)
        return "numerics.large_fill" if overflows and lines.find("numerics.large_fill", source) else None
    if name == "large_scores":
        if lines.find("numerics.small_fill", source):
            return "numerics.small_fill"
        by_hand = lines.find("numerics.no_max", source) and not re.search(
            rb"\b(?:amax|max|maximum|logsumexp)\(", source
        )
        return "numerics.no_max" if not_finite and by_hand else None
    if name == "float64_throughout" and lines.find("numerics.forced_float32", source):
        return "numerics.forced_float32"
    return None
