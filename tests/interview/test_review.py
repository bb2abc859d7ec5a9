"""The scorecard and the pages: every score has its evidence, and what an attempt says is only ever text."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from attn_kata import catalog
from attn_kata.interview import control, pages, quality, review, scorecard, timeline
from attn_kata.report.model import Finding, Isolation, Report

from .conftest import RIGHT

SCHEMA = json.loads((Path(pages.__file__).with_name("review.schema.json")).read_text("utf-8"))
REPORT_SCHEMA = Path(pages.__file__).parents[1] / "report" / "report.schema.json"
CORE = ("output_shape", "values", "gradients", "float32")
EDGE = ("large_scores", "half_precision")

EVIL = b'''"""</pre><script>alert(1)</script> <img src=http://evil.example/x>
\x1b[31mred\x1b]0;title\x07 {{ 7 * 7 }} {% raw %} ]]> -->"""
# ``` ```` | pipe | [link](http://evil.example) \xe2\x80\xae\xff
def scaled_dot_product_attention(q, k, v):
    print("<b>&amp;")
    return v
'''


class FakeEngine:
    """Holds or fails properties by what stands in the source: `# holds: values, gradients`."""

    def __init__(self) -> None:
        self.graded: list[bytes] = []

    def grade(self, slug, source, *, attempt, seed=0, diagnose=True, **rest):
        self.graded.append(source)
        found = re.search(rb"# holds: ([\w, ]*)", source)
        holds = (
            set(found[1].decode().strip().split(", "))
            if found
            else {*CORE, *EDGE}
            if source == RIGHT
            else {"output_shape"}
        )
        findings = [
            Finding(
                property=name, claim=f"{name} <i>claim</i>", tier="core" if name in CORE else "edge",
                outcome="passed" if name in holds else "failed",
                message=None if name in holds else "out[0] is <script>1</script>\x1b[2J, expected 2",
                look_at=None, case=None, needs=[], example=None, seconds=0.1,
            )
            for name in (*CORE, *EDGE)
        ]  # fmt: skip
        return Report(
            kata=slug,
            attempt=attempt,
            outcome="passed" if holds >= set(CORE) else "failed",
            seed=seed,
            findings=findings,
            diagnosis=[],
            ungraded_because=None,
            attempt_output="<script>printed</script>\x1b[31m",
            isolation=Isolation(tier=1, landlock=7, seccomp=True, notes=[]),
            seconds={"total": 1.0, "load": 0.5, "properties": 0.4, "diagnosis": 0.0},
            versions={"attn_kata": "0", "torch": "0", "python": "0"},
        )


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def go_to_review(desk, session, answers=True):
    for _ in range(4):
        session = control.advance(desk, session.id)
        if session.state == "follow_up" and answers:
            for place, one in enumerate(session.follow_ups, 1):
                session = control.answer(desk, session.id, place, str(one.get("answer", "in words")))
        if session.state == "review":
            return session
    raise AssertionError(session.state)


def card_of(desk, session, engine, **help_):
    review.grade(desk.store, session, engine)
    return scorecard.score(review.gather(desk.store, session), **help_)


def scores(card) -> dict[str, int]:
    return {one.name: one.score for one in card.dimensions}


def ask_what_matters(desk, session):
    from attn_kata.interview import content

    for number, question in enumerate(content.of_kata("sdpa").questions, 1):
        if question.matters:
            control.ask(desk, session.id, number)


def test_a_strong_session_is_a_strong_yes(desk, clock, begin, engine):
    session = begin(minutes=30)
    ask_what_matters(desk, session)
    for _ in range(2):
        clock.goes(minutes=2)
        control.ran(desk, session.id, RIGHT, outcome="passed")
    control.submit(desk, session.id, RIGHT)
    card = card_of(desk, go_to_review(desk, session), engine)

    assert scores(card) == dict.fromkeys(scores(card), 4)
    assert len(card.dimensions) == 8
    assert card.overall == "strong yes"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ([4, 4, 4, 4, 4, 4, 4, 4], "strong yes"),
        ([4, 4, 4, 4, 4, 4, 4, 2], "yes"),
        ([1, 4, 4, 4, 4, 4, 4, 4], "yes"),
        ([1, 4, 4, 4, 4, 4, 1, 4], "no"),
        ([4, 2, 4, 4, 4, 4, 4, 4], "no"),
        ([3, 3, 3, 3, 3, 3, 3, 3], "yes"),
        ([3, 3, 3, 3, 3, 3, 3, 2], "no"),
        ([1, 1, 1, 1, 1, 1, 1, 4], "strong no"),
        ([4, 1, 4, 1, 1, 1, 1, 4], "no"),
    ],
)
def test_the_overall_line_follows_its_rule(given, line):
    names = ["Clarification", "Correctness", *"abcdef"]
    judged = [
        scorecard.Dimension(name=name, score=score, evidence=("seen",), rule="")
        for name, score in zip(names, given, strict=True)
    ]

    assert scorecard.overall(judged, sum(given) / 8) == line


def test_an_untouched_stub_is_a_strong_no(desk, clock, begin, engine):
    session = begin(minutes=30)
    clock.goes(minutes=31)
    control.tick(desk, session.id)
    card = card_of(desk, go_to_review(desk, session, answers=False), engine)

    assert card.overall == "strong no"
    assert scores(card)["Correctness"] == 1
    assert scores(card)["Testing discipline"] == 1
    assert scores(card)["Clarification"] == 1


def test_every_dimension_has_evidence_and_a_rule_that_names_each_score(desk, begin, engine):
    session = begin()
    control.submit(desk, session.id, b"# holds: values\n")
    card = card_of(desk, go_to_review(desk, session), engine)

    for one in card.dimensions:
        assert one.evidence, one.name
        assert {"4:", "3:", "2:", "1:"} <= set(re.findall(r"\d:", one.rule)), one.name


def test_asking_everything_is_not_the_same_as_asking_what_matters(desk, begin, engine):
    session = begin()
    for number in range(1, 7):
        control.ask(desk, session.id, number)
    control.submit(desk, session.id, RIGHT)

    assert scores(card_of(desk, go_to_review(desk, session), engine))["Clarification"] == 2


def test_a_stage_that_was_not_reached_counts(desk, clock, begin, engine):
    session = begin("sdpa", "causal_mask")
    control.submit(desk, session.id, RIGHT)
    clock.goes(minutes=60)
    control.tick(desk, session.id)
    card = card_of(desk, go_to_review(desk, session), engine)

    assert scores(card)["Correctness"] == 2
    assert "Not begun: causal_mask." in card.notes


def test_what_broke_again_is_seen(desk, clock, begin, engine):
    session = begin()
    for source in (
        b"# holds: output_shape, values\n",
        b"# holds: output_shape\n",
        b"# holds: output_shape, values #2\n",
    ):
        clock.goes(minutes=1)
        control.ran(desk, session.id, source, outcome="failed")
    control.submit(desk, session.id, b"# holds: output_shape, values #2\n")
    session = go_to_review(desk, session)
    review.grade(desk.store, session, engine)
    flips = [
        (point.at, flip.property, flip.how)
        for point in timeline.points(
            session, desk.store.reports(session.id), lambda digest: desk.store.source(session.id, digest)
        )
        for flip in point.flips
    ]

    assert (60.0, "values", "holds") in flips
    assert (120.0, "values", "broke") in flips
    assert (180.0, "values", "holds again") in flips


def test_help_costs_independence(desk, begin, engine):
    session = begin(mode="coached")
    control.submit(desk, session.id, RIGHT)
    session = go_to_review(desk, session)

    assert scores(card_of(desk, session, engine))["Independence"] == 3
    assert scores(card_of(desk, session, engine, hints=2))["Independence"] == 2
    assert scores(card_of(desk, session, engine, hints=2, references=1))["Independence"] == 1


def test_self_reported_points_count_nowhere(desk, begin, engine):
    session = begin()
    control.submit(desk, session.id, RIGHT)
    session = control.advance(desk, session.id)
    free = next(place for place, one in enumerate(session.follow_ups, 1) if one["kind"] == "free")
    control.answer(desk, session.id, free, "words")
    before = card_of(desk, desk.store.load(session.id), engine)
    control.tick_points(desk, session.id, free, (1, 2, 3))
    after = card_of(desk, desk.store.load(session.id), engine)

    assert scores(before) == scores(after)
    assert any("3 of 5 points ticked" in line for line in after.self_reported)


def test_a_late_file_has_no_speed(desk, clock, begin, engine):
    session = begin()
    clock.goes(minutes=60)
    session.file.write_bytes(RIGHT)
    os.utime(session.file, (clock.wall(), clock.wall()))
    control.tick(desk, session.id)
    card = card_of(desk, go_to_review(desk, session), engine)

    assert scores(card)["Speed"] == 1
    assert any("saved after the end" in note for note in card.notes)


def test_each_version_is_graded_once_even_when_the_grading_is_cut_short(desk, begin, engine):
    session = begin()
    for number in range(5):
        control.save(desk, session.id, b"# %d" % number)
    control.submit(desk, session.id, RIGHT)
    session = go_to_review(desk, session)

    class Dies(FakeEngine):
        def grade(self, *args, **rest):
            if len(self.graded) == 3:
                raise KeyboardInterrupt
            return super().grade(*args, **rest)

    dies = Dies()
    with pytest.raises(KeyboardInterrupt):
        review.grade(desk.store, session, dies)
    review.grade(desk.store, session, engine)

    assert review.graded(desk.store, session)
    assert len(dies.graded) + len(engine.graded) == 7
    assert len({*dies.graded, *engine.graded}) == 7


def test_many_saves_are_thinned_out_but_what_was_taken_is_graded(desk, begin, engine):
    session = begin()
    for number in range(150):
        control.save(desk, session.id, b"# %d" % number)
    control.submit(desk, session.id, RIGHT)
    session = go_to_review(desk, session)
    review.grade(desk.store, session, engine)

    assert len(engine.graded) <= review.MOST_VERSIONS + 2
    assert engine.graded[0] == RIGHT


def test_the_spread_shows_the_last_five(desk, begin, engine):
    kept = {number: {"dimensions": [{"name": "Speed", "score": number % 4 + 1}]} for number in range(1, 9)}

    assert scorecard.spread(kept, until=7) == (scorecard.Spread(name="Speed", scores=(4, 1, 2, 3, 4)),)


def test_gaps_of_more_than_two_minutes_are_found(desk, clock, begin):
    session = begin()
    clock.goes(minutes=1)
    control.save(desk, session.id, b"1")
    clock.goes(minutes=7)
    control.save(desk, session.id, b"2")

    assert timeline.gaps(desk.store.load(session.id)) == [timeline.Gap(at=60.0, seconds=420.0)]


# The pages ------------------------------------------------------------------------------------


@pytest.fixture
def evil(desk, clock, begin, engine):
    """The body of a session whose attempt is made of what must not get through."""
    session = begin()
    control.ran(desk, session.id, b"x = 1\n", outcome="failed")
    clock.goes(minutes=3)
    control.save(desk, session.id, EVIL)
    control.submit(desk, session.id, EVIL)
    session = control.advance(desk, session.id)
    free = next(place for place, one in enumerate(session.follow_ups, 1) if one["kind"] == "free")
    control.answer(desk, session.id, free, "</li><script>alert(2)</script>\x1b[31m\ud800 | ``` [x](y)")
    session = control.advance(desk, session.id)
    review.grade(desk.store, session, engine)
    reviewed = review.gather(desk.store, session)
    card = scorecard.score(reviewed)
    spread = scorecard.spread({1: card.to_dict(), 2: card.to_dict()}, until=2)
    return pages.body(reviewed, card, spread)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [
            (tag, name) for name, _ in attrs if name in ("src", "href", "action", "data", "srcset", "onload", "onerror")
        ]

    def handle_data(self, data):
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
    assert "script" not in page.tags
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

    assert html.count("the code then") == 3  # the stub, x = 1, and what was taken
    assert html.count("what changed") == 2
    assert "-x = 1" in html


@pytest.mark.parametrize("form", ["terminal", "json", "markdown", "html"])
def test_no_control_character_gets_through(evil, form):
    shown = {
        "terminal": pages.as_terminal, "json": pages.as_json, "markdown": pages.as_markdown, "html": pages.as_html,
    }[form](evil)  # fmt: skip
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


def test_colour_is_only_there_when_asked_for(evil):
    assert "\x1b[" in pages.as_terminal(evil, color=True)


# The linter ------------------------------------------------------------------------------------


def test_the_linter_finds_what_it_finds():
    found = quality.lint(b"import os\n\n\ndef f():\n    return missing\n")

    assert [(one.line, one.says) for one in found] == [(1, "'os' imported but unused"), (5, "undefined name 'missing'")]


def test_the_linter_runs_nothing_and_reads_nothing_of_the_attempt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyflakes.py").write_text("raise SystemExit('imported')")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYFLAKES_BUILTINS", "missing")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    mark = tmp_path / "mark"
    found = quality.lint(f"open({str(mark)!r}, 'w')\nprint(missing)\n".encode())

    assert [one.says for one in found] == ["undefined name 'missing'"]
    assert not mark.exists()


@pytest.mark.parametrize(
    "source", [b"def (", b"\x00", b"(" * 5000, b"-" * 200_000 + b"1", b"# coding: none\n", "é".encode("utf-16")]
)
def test_the_linter_survives_any_source(source):
    found = quality.lint(source)

    assert found is None or isinstance(found, tuple)


def test_the_linter_is_content_with_every_reference():
    for kata in catalog.katas():
        if kata.solution.exists():
            assert quality.lint(kata.solution.read_bytes()) == (), kata.slug
