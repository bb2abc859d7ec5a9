"""The screen, for any report: it fits, and nothing of the attempt moves the cursor."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.engine.client import EngineFault
from attn_kata.report.model import Diagnosis, Finding, Isolation, NamedMistake, Report
from attn_kata.watch.screen import Page, clock, draw, draw_page, scrolled, wrapped
from attn_kata.watch.session import Flips, WatchSession

HOSTILE = "\x1b[2J\x1b]0;x\x07 [bold]x[/bold] \r\n\n\u202e" + "wide " * 200 + "ｗ" * 300


def session(text: str, *, ungraded: bool = False) -> WatchSession:
    finding = Finding(
        property="values",
        claim=f"The claim {text}",
        tier="core",
        outcome="failed",
        message=text * 3,
        look_at=text,
        case={"B": 2, "T": text},
        needs=[],
        example=None,
        seconds=0.0,
    )
    mistake = NamedMistake(
        id="scale.missing", title=f"Title {text}", explanation=text, question=text, line=6, source_line=text
    )
    report = Report(
        kata="sdpa",
        attempt=text,
        outcome="ungraded" if ungraded else "failed",
        seed=0,
        findings=[] if ungraded else [finding] * 9,
        diagnosis=[] if ungraded else [Diagnosis(mistakes=[mistake, mistake])] * 2,
        ungraded_because=text if ungraded else None,
        attempt_output=text,
        isolation=Isolation(tier=1, landlock=7, seccomp=True, notes=[]),
        seconds={"total": 0.1},
        versions={},
        reading={
            "kata": "sdpa",
            "entry": "attend",
            "lines": [{"what": "call", "value": text}],
            "notes": [f"Another way {text}"] * 5,
        },
    )
    return WatchSession(
        kata=catalog.find("sdpa"),
        path=Path("/x"),
        name=f"name {text}",
        started=0.0,
        report=report,
        gradings=3,
        flips=Flips(now_hold=["a" * 90, text], now_fail=["b"] * 60),
        missing=text or None,
        fault=EngineFault(text),
    )


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (20, 6), (200, 60)], ids=str)
@pytest.mark.parametrize("color", [False, True], ids=["plain", "colour"])
@pytest.mark.parametrize("ungraded", [False, True], ids=["failed", "ungraded"])
def test_whatever_the_report_says_the_screen_has_its_size(size, color, ungraded):
    from rich.cells import cell_len

    width, height = size
    lines = draw(session(HOSTILE, ungraded=ungraded), now=75.0, width=width, height=height, color=color)
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]

    assert len(lines) == height
    assert max(map(cell_len, bare)) <= width
    assert all(line.isprintable() for line in bare)
    assert "[bold]" in "".join(bare) or width < 80


def test_what_was_not_tried_is_counted_once_in_the_words_of_grade():
    shown = session("plain")
    assert shown.report is not None
    core = replace(shown.report.findings[0], outcome="skipped", property="mask")
    findings = [*shown.report.findings, core, replace(core, property="large_scores", tier="edge")]
    shown.report = replace(shown.report, findings=findings, reading=None)
    text = "\n".join(draw(shown, now=75.0, width=80, height=40, color=False))

    assert "0 of 10 core properties hold, 9 failed, 1 not tried" in text
    assert text.count("not tried") == 1
    assert "skipped" not in text


def test_flips_come_before_the_reading_then_the_diagnosis_and_then_what_fails():
    lines = draw(session("plain"), now=75.0, width=80, height=40, color=False)
    text = "\n".join(lines)

    order = (
        "now holds",
        "now fails",
        "Read as sdpa:  attend  call plain",
        "Another",
        "(scale.missing)",
        "FAIL  values",
    )
    assert lines[0].endswith("1:15")
    assert sorted(order, key=text.index) == list(order)
    assert text.count("Another way") == 2


def test_what_the_code_printed_is_said_to_be_there():
    """It was in the full report alone, and nothing said so to whoever looked for their own print."""
    loud, quiet = session("plain"), session("")
    loud.missing = quiet.missing = None

    assert draw(loud, now=75.0, width=80, height=24, color=False)[-2].endswith("Save to grade. Your prints: f.")
    assert draw(quiet, now=75.0, width=80, height=24, color=False)[-2].endswith("Save to grade.")


def test_a_page_is_scrolled_no_further_than_its_end():
    page = Page(title="hint", lines=wrapped("word " * 400, 40))
    end = scrolled(page, 10_000, 24)

    assert len(draw_page(page, width=40, height=24, color=False)) == 24
    assert draw_page(end, width=40, height=24, color=False)[-2] == page.lines[-1]
    assert scrolled(end, -10_000, 24).top == 0


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00"), (65.9, "1:05"), (3_725, "1:02:05")])
def test_the_clock(seconds, shown):
    assert clock(seconds) == shown
