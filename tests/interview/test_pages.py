"""The pages of a review: whatever an attempt says is only ever text, and a page needs nothing else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from attn_kata.interview import pages, replay

SCHEMA = json.loads((Path(pages.__file__).with_name("review.schema.json")).read_text("utf-8"))
REPORT_SCHEMA = Path(pages.__file__).parents[1] / "report" / "report.schema.json"


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._in_script = tag == "script"
        self.links += [
            (tag, name) for name, _ in attrs if name in ("src", "href", "action", "data", "srcset", "onload", "onerror")
        ]

    def handle_endtag(self, tag):
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data):
        if self._in_script:
            self.scripts.append(data)
        else:
            self.text += data


def test_the_json_keeps_to_its_schema(evil):
    body = json.loads(pages.as_json(evil))
    jsonschema.validate(body, SCHEMA)
    for one in body["taken"]:
        jsonschema.validate(one["report"], json.loads(REPORT_SCHEMA.read_text("utf-8")))


def test_the_page_refers_to_nothing_and_escapes_everything(evil):
    html = pages.as_html(evil)
    page = Page()
    page.feed(html)

    assert page.links == []
    assert page.tags.count("script") == 2  # the replay: its data, and the one script that the policy names
    json.loads(page.scripts[0])
    assert page.scripts[1] == replay.script()
    assert f"script-src '{replay.script_hash()}'" in html
    assert not {"img", "link", "iframe", "object"} & set(page.tags)
    assert "default-src 'none'" in html
    assert "@import" not in html
    assert "url(" not in html
    assert "<script>alert(1)</script>" in page.text
    assert "49" not in re.findall(r"\{\{ 7 \* 7 \}\}|\b49\b", page.text)


def test_the_page_is_for_light_and_dark_and_paper(evil):
    html = pages.as_html(evil)

    assert "color-scheme: light dark" in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_the_page_shows_the_code_at_each_moment_and_what_changed(evil):
    html = pages.as_html(evil)

    assert html.count("the code at this time") == 3  # the stub, x = 1, and what was taken
    assert html.count("what changed") == 2
    assert "-x = 1" in html


@pytest.mark.parametrize("form", ["terminal", "json", "markdown", "html"])
def test_no_control_character_gets_through(evil, form):
    shown = {
        "terminal": pages.as_terminal,
        "json": pages.as_json,
        "markdown": pages.as_markdown,
        "html": pages.as_html,
    }[form](evil)
    shown.encode("utf-8")

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_markdown_keeps_the_attempt_inside_its_fence(evil):
    text = pages.as_markdown(evil)
    fences = re.findall(r"^`{3,}", text, re.MULTILINE)

    assert "`````" in fences  # longer than the four in the attempt
    assert len(fences) % 2 == 0
    assert "<script>" not in re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", text)


def test_the_terminal_is_eighty_columns_without_colour(evil):
    assert max(map(len, pages.as_terminal(evil, width=80).splitlines())) <= 80


@pytest.mark.parametrize("terminal", ["dumb", "unknown", "xterm-256color", None])
def test_colour_is_there_when_it_is_asked_for_and_only_then(evil, monkeypatch, terminal):
    """Whether to colour is the caller's to say: what TERM says was asked before."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    if terminal is None:
        monkeypatch.delenv("TERM", raising=False)
    else:
        monkeypatch.setenv("TERM", terminal)
    verdict = evil["scorecard"]["overall"]

    assert re.search(rf"Overall: \x1b\[[\d;]*m{verdict}", pages.as_terminal(evil, color=True))
    assert "\x1b" not in pages.as_terminal(evil, color=False)


def test_a_page_has_words_for_its_times_and_its_state(evil):
    short = {**evil, "interview": {**evil["interview"], "minutes": 0.4, "state": "time_up"}}
    one = {**evil, "interview": {**evil["interview"], "minutes": 1.0}}

    assert "of 24 seconds used, time up." in pages.as_markdown(short)
    assert "of 1 minute used" in pages.as_markdown(one)
    assert "time_up" not in pages.as_markdown(short) + pages.as_html(short)
