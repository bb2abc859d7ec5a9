"""The scorecard: every score has its evidence."""

from __future__ import annotations

import os
import re

import pytest

from attn_kata import catalog
from attn_kata.interview import control, quality, review, scorecard, timeline

from .conftest import RIGHT
from .engine_double import FakeEngine


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
    assert "Not started: causal_mask." in card.notes


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


def test_what_was_not_tried_is_not_told_as_failed_or_broken(desk, clock, begin, engine):
    session = begin(minutes=30)
    for source in (RIGHT, b"# holds: output_shape, float32\n# skips: gradients, half_precision\n"):
        clock.goes(minutes=2)
        control.ran(desk, session.id, source, outcome="failed")
        control.save(desk, session.id, source)
    control.submit(desk, session.id, source)
    reviewed = go_to_review(desk, session)
    card = card_of(desk, reviewed, engine)
    evidence = {one.name: one.evidence for one in card.dimensions}

    assert evidence["Correctness"] == (
        "sdpa: 2 of 4 core properties, 0 of 2 edge properties",
        "sdpa: fails values",
        "sdpa: not tried, and counted as not holding: gradients",
    )
    assert "not tried, and counted as not holding: gradients, half_precision" in evidence["Gradients and numerics"]
    assert "properties that broke on the way: values" in evidence["Testing discipline"]


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


def test_what_is_not_python_has_no_speed_and_breaks_nothing(desk, clock, begin, engine):
    session = begin(minutes=30)
    broken = b"def broken(:\n"
    for source in (b"# holds: output_shape, values\n", broken):
        clock.goes(minutes=2)
        control.save(desk, session.id, source)
    control.submit(desk, session.id, broken)
    card = card_of(desk, go_to_review(desk, session), engine)
    evidence = {one.name: one.evidence for one in card.dimensions}

    assert scores(card)["Speed"] == 1
    assert "all core properties: never" in evidence["Speed"]
    assert not any("broke" in line for line in evidence["Testing discipline"])


def test_a_late_file_has_no_speed(desk, clock, begin, engine):
    session = begin()
    clock.goes(minutes=60)
    session.file.write_bytes(RIGHT)
    os.utime(session.file, (clock.wall(), clock.wall()))
    control.tick(desk, session.id)
    card = card_of(desk, go_to_review(desk, session), engine)

    assert scores(card)["Speed"] == 1
    assert any("saved only after the end" in note for note in card.notes)


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


# The linter ------------------------------------------------------------------------------------


def test_the_linter_finds_what_it_finds():
    found = quality.lint(b"import os\n\n\ndef f():\n    return missing\n")

    assert [(one.line, one.says) for one in found] == [(1, "'os' imported but unused"), (5, "undefined name 'missing'")]


def test_what_is_left_over_is_found_and_what_belongs_there_is_not():
    code = b"""def f(a, w):
    # q (B, H, T, D) times k, then the mean: shape (B, T)
    c = a @ w
    print(c.shape)
    g = c * 2
    r = g.sum()
    # s = r.softmax(-1)
    # return s
    # the scores are scaled = divided
    o = r
    return o


if __name__ == "__main__":
    print(f(1, 2))
"""
    found = {(one.line, one.says.split(":")[0]) for one in quality.lint(code)}

    assert found == {
        (3, "most names have one letter"),
        (4, "'print' is left in"),
        (7, "commented-out code"),
        (8, "commented-out code"),
    }


def test_the_linter_runs_nothing_and_reads_nothing_of_the_attempt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyflakes.py").write_text("raise SystemExit('imported')")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYFLAKES_BUILTINS", "missing")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    mark = tmp_path / "mark"
    found = quality.lint(f"open({str(mark)!r}, 'w')\nprint(missing)\n".encode())

    assert [one.says for one in found] == ["undefined name 'missing'", "'print' is left in"]
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
