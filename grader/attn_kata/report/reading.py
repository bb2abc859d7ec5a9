"""The reading of code by other names, in a report: how it was understood, what departs from the contract, how to change it."""

from __future__ import annotations

import shlex
from typing import Any

from attn_kata.report.page import Page
from attn_kata.report.plain import one_line

_LABEL = 11  # columns of the labels


def write(page: Page, reading: dict[str, Any]) -> None:
    """The block below the verdict."""
    page.blank()
    page.line((f"Read as {one_line(reading['kata'])}:  ", ""), (one_line(reading["entry"]), "bold"))
    for line in reading["lines"]:
        page.hanging((f"  {one_line(line['what'])}", "dim"), one_line(line["value"], most=400), indent=2 + _LABEL)
    if reading["departures"]:
        departs = " · ".join(one_line(text) for text in reading["departures"])
        page.line(f"Departs from the contract (not mistakes): {departs}")
    for note in reading["notes"]:
        page.line((one_line(note, most=600), "yellow"))
    if reading["candidates"]:
        page.line(
            (f"Others that may be meant: {', '.join(map(one_line, reading['candidates']))} (--class NAME)", "dim")
        )
    example = next((flag for flag in reading["flags"] if flag.startswith(("fused=", "mask=", "q="))), None)
    example = example or next((flag for flag in reading["flags"] if flag.startswith(("dims=", "k="))), "q=PARAMETER")
    page.line((f"Override with --read, for instance --read {shlex.quote(one_line(example))}", "dim"))
