"""Questions in one's own words reach the content's question, or none: hardly ever another one."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.interview import actions, clarifying, content, control, plans, vocabulary

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Sets of questions, written by people who had read only the tasks; the files say how.
FOLDER = Path(__file__).parent
SETS = [
    "wordings.toml",
    "wordings_of_tasks.toml",
    "wordings_of_tasks_later.toml",
    "wordings_of_tasks_last.toml",
    "wordings_of_tasks_newest.toml",
]


def test_every_wording_of_the_content_reaches_its_question_or_none():
    found = [
        (clarifying.heard(slug, text), [number])
        for slug in catalog.slugs()
        for number, one in enumerate(content.of_kata(slug).questions, 1)
        for text in one.wordings
    ]
    right = sum(got == wanted for got, wanted in found)
    wrong = sum(bool(got) and got != wanted for got, wanted in found)

    assert right >= 0.96 * len(found)  # the matcher is cautious: rather no answer than a wrong one
    assert wrong <= 0.01 * len(found)


def test_every_kata_of_today_has_wordings():
    with_none = [slug for slug in catalog.slugs() if not all(one.wordings for one in content.of_kata(slug).questions)]

    assert {"sdpa", "mha", "padding_mask", "softmax", "cross_attention"}.isdisjoint(with_none)


def test_every_question_is_worded_in_ten_ways():
    few = [
        (slug, one.ask)
        for slug in catalog.slugs()
        for one in content.of_kata(slug).questions
        if len({*one.wordings, one.ask}) <= 10
    ]

    assert not few


def test_no_wording_of_somebody_else_is_in_the_content():
    known = {text for every in clarifying.wordings().values() for text in every}
    rows = [row for file in SETS[1:] for row in tomllib.loads((FOLDER / file).read_text("utf-8"))["wording"]]
    copied = [row["wording"] for row in rows if row["wording"] in known]

    assert not copied


@pytest.mark.parametrize(
    ("mistyped", "meant"), [("shoud", None), ("divisble", "divisible"), ("paddding", "pad"), ("explain", "explain")]
)
def test_a_mistyped_word_is_mended_but_not_another_word(mistyped, meant):
    known = vocabulary.known_words(["plain", "pad"])

    assert vocabulary.mended(mistyped, known) == meant


@pytest.mark.parametrize(
    ("text", "means"), [("take the mean over tokens", True), ("what does True mean", False), ("True means?", False)]
)
def test_a_mean_of_numbers_is_not_what_something_means(text, means):
    assert ("average" in vocabulary.words(text)) == means


@pytest.mark.parametrize("file", SETS)
def test_wordings_of_somebody_else_reach_the_right_question(file):
    asked = wrong = right = 0
    rows = tomllib.loads((FOLDER / file).read_text("utf-8"))["wording"]
    for row in rows:
        every = [one.ask for one in content.of_kata(row["kata"]).questions]
        got = {every[number - 1] for number in clarifying.heard(row["kata"], row["wording"])}
        wanted = {row["question"]} if isinstance(row["question"], str) else set(row["question"])
        assert wanted <= {*every, "none"}
        asked += "none" not in wanted
        right += bool(got & wanted) and "none" not in wanted
        wrong += not got <= wanted  # also an answer too many beside the right one

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
        ("mha", "In the mask, True = keep? I ask because num_heads may not divide.", ["what True in the mask means"]),
    ],
)
def test_typing_errors_two_questions_and_none(slug, text, settled):
    questions = content.of_kata(slug).questions

    assert [questions[number - 1].settles for number in clarifying.heard(slug, text)] == settled


@pytest.mark.parametrize(
    ("slug", "text", "ask"),
    [("self_attention", "is there a mask", "Is it causal?"), ("gqa", "cache?", "Is there a cache of keys and values?")],
)
def test_one_common_word_is_enough(slug, text, ask):
    questions = content.of_kata(slug).questions

    assert [questions[number - 1].ask for number in clarifying.heard(slug, text)] == [ask]


def test_without_full_text_search_the_list_is_offered(monkeypatch):
    clarifying._table.cache_clear()
    connect = sqlite3.connect

    class Small(sqlite3.Connection):
        def execute(self, sql, *given):
            return super().execute(sql.replace("fts5", "fts99"), *given)

    monkeypatch.setattr(clarifying.sqlite3, "connect", lambda *given, **named: connect(*given, factory=Small, **named))
    with pytest.raises(UsageError, match="need SQLite with FTS5: no such module") as refused:
        clarifying.heard("mha", "what does True mean?")

    assert "--list-questions" in refused.value.next_step


def test_what_nothing_answers_is_kept_and_said(desk, tmp_path):
    session = control.start(desk, plans.of_katas(("sdpa",)), mode="mock", folder=tmp_path)

    assert actions.ask(desk, session, "may I use numpy?") == clarifying.UNKNOWN
    assert "-> No, there may be any number of leading dimensions" in actions.ask(desk, session, "is x always 4d?")
    session = desk.store.active()
    assert session.unknown == ((0, "may I use numpy?"),)
    assert len(session.asked) == 1
    with pytest.raises(Exception, match="'1' is not a question"):
        actions.ask(desk, session, "1")
