"""The report of code that is read, through the whole path: it stays the same where its reading is typed back."""

from __future__ import annotations

from typing import Any

import pytest

from attn_kata.report.model import Report
from attn_kata.specimens import Edit, apply

from . import adapter
from .test_search import KATAS

PIECES, MISTAKES = adapter.table("pieces"), adapter.table("mistakes")


def of_kata(slug: str) -> tuple[str, str]:
    """The last piece of the kata with a mistake, where there is one: its name, and the source."""
    wrong = [name for name, row in MISTAKES.items() if PIECES[row["piece"]]["kata"] == slug]
    if not wrong:
        name = [name for name, row in PIECES.items() if row["kata"] == slug][-1]
        return name, adapter.source(name)
    row = MISTAKES[wrong[-1]]
    edits = [Edit(old=edit["old"], new=edit["new"], place=wrong[-1]) for edit in row["edit"]]
    return wrong[-1], apply(adapter.source(row["piece"]), edits)


def compared(report: Report) -> dict[str, Any]:
    """The JSON report without times, and without the questions of its reading: what is typed back answers them."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(one) for key, one in value.items() if key != "seconds"}
        return [timeless(one) for one in value] if isinstance(value, list) else value

    body: dict[str, Any] = timeless(report.to_dict())
    asks = ("Nothing in the code says what True", "Another reading explains")
    notes = [one for one in body["reading"]["notes"] if not one.startswith(asks)]
    body["reading"] |= {"settled": True, "ties": [], "notes": notes}
    return body


@pytest.mark.parametrize("slug", KATAS)
def test_a_reading_typed_back_gives_the_same_report(slug, shared_engine):
    name, source = of_kata(slug)
    report = shared_engine.grade(slug, source.encode(), attempt="piece.py", reads=True)
    assert report.reading is not None, (name, report.ungraded_because)
    flags = tuple(report.reading["flags"])
    again = shared_engine.grade(slug, source.encode(), attempt="piece.py", reads=True, flags=flags)

    assert compared(again) == compared(report), name
