"""Questions in one's own words reach the content's question, or none: hardly ever another one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.interview import actions, clarifying, content, control, plans

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Written by somebody who had read only the tasks: kata, wording, and `question`: the text of its question, or "none".
WORDINGS = Path(__file__).with_name("wordings.toml")


def test_every_wording_of_the_content_reaches_its_question_or_none():
    found = [
        (clarifying.heard(slug, text), [number])
        for slug in catalog.slugs()
        for number, one in enumerate(content.of_kata(slug).questions, 1)
        for text in one.wordings
    ]
    right = sum(got == wanted for got, wanted in found)
    wrong = sum(bool(got) and got != wanted for got, wanted in found)

    assert right >= 0.97 * len(found)
    assert wrong <= 0.01 * len(found)


def test_every_kata_of_today_has_wordings():
    with_none = [slug for slug in catalog.slugs() if not all(one.wordings for one in content.of_kata(slug).questions)]

    assert {"sdpa", "mha", "padding_mask", "softmax", "cross_attention"}.isdisjoint(with_none)


@pytest.mark.skipif(not WORDINGS.exists(), reason="wordings.toml is written by somebody else, and merged on its own")
def test_wordings_of_somebody_else_reach_the_right_question():
    rows = tomllib.loads(WORDINGS.read_text("utf-8"))
    rows = next(value for value in rows.values() if isinstance(value, list))
    asked = wrong = right = 0
    for row in rows:
        got = clarifying.heard(row["kata"], row["wording"])
        every = [one.ask for one in content.of_kata(row["kata"]).questions]
        wanted = row["question"] if isinstance(row["question"], str) else every[row["question"] - 1]
        names = [every[number - 1] for number in got]
        asked += wanted != "none"
        right += wanted in names
        wrong += bool(names) and wanted not in names

    assert right >= 0.9 * asked
    assert wrong <= 0.03 * len(rows)


@pytest.mark.parametrize(
    ("slug", "text", "settled"),
    [
        ("mha", "whats the mask convetion", ["what True in the mask means"]),
        (
            "mha",
            "Can heads not divde the embedding dim? And what shape is the mask?",
            ["what happens if num_heads does not divide embed_dim", "which shapes a mask may have"],
        ),
        ("sdpa", "can I use numpy", []),
        ("sdpa", "", []),
        ("sdpa", "???", []),
        ("sdpa", "what is the weather like", []),
        ("padding_mask", "x" * 100_000, []),
    ],
)
def test_typing_errors_two_questions_and_none(slug, text, settled):
    questions = content.of_kata(slug).questions

    assert [questions[number - 1].settles for number in clarifying.heard(slug, text)] == settled


def test_what_nothing_answers_is_kept_and_said(desk, tmp_path):
    session = control.start(desk, plans.of_katas(("sdpa",)), mode="mock", folder=tmp_path)

    assert actions.ask(desk, session, "may I use numpy?") == clarifying.UNKNOWN
    assert "-> No, there may be any number of leading dimensions" in actions.ask(desk, session, "is x always 4d?")
    session = desk.store.active()
    assert session.unknown == ((0, "may I use numpy?"),)
    assert len(session.asked) == 1
    with pytest.raises(Exception, match="'1' is not a question"):
        actions.ask(desk, session, "1")
