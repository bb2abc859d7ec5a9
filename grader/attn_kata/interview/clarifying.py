"""Finds the content's question that a candidate means, asked in the candidate's own words.

The wordings of `interview.toml` and `topics.toml` are sorted by topic: each topic is one text. SQLite's full-text search
ranks the topics of the kata, and the topics of `topics.toml`, by BM25 for the words of the question and for each pair of
neighbours. What counts as a word is in vocabulary.py. See docs/decisions/0020-questions-by-bm25.md.

A question is found only if enough speaks for it, if it is clearly ahead of the kata's other questions, and if no topic
that the kata does not answer is ahead; what only other katas answer is asked less often, so it counts less. No answer is
better than the answer to another question.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from functools import cache
from pathlib import Path

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.interview import content, vocabulary
from attn_kata.tables import Table

NEAR = 5.5  # least score
NEAR_OF_ONE = 1.3  # least score for a question of one word
BESIDE = 10.0  # least score of a question beside the first in one text
CLEAR = 0.1  # least lead over the kata's other questions, as a share
ELSEWHERE = 0.75  # what counts of the score of a topic that only other katas answer
LONGEST = 500  # characters of a text that are read
UNKNOWN = "Decide yourself, and write down what you assumed."
_APART = " _ "  # between two wordings: no pair of neighbours goes over it
_FILE = Path(__file__).with_name("topics.toml")
_SENTENCE = re.compile(r"(?:[^?\n;.]|\.(?! ))+\??")


def heard(slug: str, text: str) -> list[int]:
    """The numbers (from 1) of the kata's questions that the text asks, sentence by sentence, each once.

    Beside sentences with a question mark, the others only say why somebody asks. They count where nothing else is found.
    Often a second sentence only goes on with the first ("And what comes out then?"). So more must speak for a second question.
    """
    sentences = [one.group() for one in _SENTENCE.finditer(text[:LONGEST]) if vocabulary.words(one.group())]
    asking = [one for one in sentences if one.endswith("?")] or sentences
    found = [each for one in asking for each in [_nearest(slug, one)] if each is not None]
    if not found and len(sentences) > 1:
        whole = _nearest(slug, text)
        found = [whole] if whole is not None else []
    most = max((score for score, _ in found), default=0.0)
    return list(dict.fromkeys(number for score, number in found if score >= min(most, BESIDE)))


def _nearest(slug: str, text: str) -> tuple[float, int] | None:
    """The score and the number of the question that this sentence asks."""
    words = _asked(text[:LONGEST])
    scores = _scores(slug, words)
    least = NEAR if len(words) > 1 else NEAR_OF_ONE
    every = range(1, len(content.of_kata(slug).questions) + 1)
    own = {topic for number in every for topic in _topics(slug, number)}
    ranked = sorted(
        ((max(scores.get(topic, 0.0) for topic in _topics(slug, number)), number) for number in every), reverse=True
    )
    answered = _answered()
    others = max(
        (score * (ELSEWHERE if topic in answered else 1.0) for topic, score in scores.items() if topic not in own),
        default=0.0,
    )
    best, number = ranked[0]
    found = best >= least > 0 and best * (1 - CLEAR) >= ranked[1][0] and best >= others
    return (best, number) if found else None


def _asked(text: str) -> list[str]:
    known = _known()
    return [right for word in vocabulary.words(text) if (right := vocabulary.mended(word, known)) is not None]


def _scores(slug: str, words: list[str]) -> dict[str, float]:
    """How much speaks for each topic, where anything does."""
    asked = {*words, *(f"{one} {other}" for one, other in itertools.pairwise(words))}
    if not asked:
        return {}
    query = " OR ".join(f'"{one}"' for one in sorted(asked))
    found = _table(slug).execute("SELECT name, -bm25(topics) FROM topics WHERE text MATCH ?", (query,))
    return dict(found.fetchall())


@cache
def _table(slug: str) -> sqlite3.Connection:
    """The kata's topics and those of every kata as a full-text table `topics (name, text)` in memory.

    What only other katas speak of is left out: it would stand in the way of this kata's questions.
    Raises UsageError where SQLite was built without full-text search.
    """
    table = sqlite3.connect(":memory:", check_same_thread=False)  # read by one thread at a time: the desk's
    try:
        table.execute(
            "CREATE VIRTUAL TABLE topics USING fts5(name UNINDEXED, text, tokenize = \"porter unicode61 tokenchars '_%'\")"
        )
    except sqlite3.OperationalError as problem:
        raise UsageError(
            f"Questions in your own words need SQLite with FTS5: {problem}.",
            next_step="Choose from a list: attn-kata interview start --list-questions",
        ) from problem
    wanted = {topic for number in range(1, len(content.of_kata(slug).questions) + 1) for topic in _topics(slug, number)}
    wanted |= set(_shared())
    table.executemany(
        "INSERT INTO topics VALUES (?, ?)",
        [(topic, _APART.join(every)) for topic, every in _plain().items() if topic in wanted],
    )
    return table


@cache
def _plain() -> dict[str, list[str]]:
    """Every topic's wordings as the table has them."""
    return {topic: [" ".join(vocabulary.words(one)) for one in every] for topic, every in wordings().items()}


@cache
def _known() -> frozenset[str]:
    return vocabulary.known_words(word for every in _plain().values() for one in every for word in one.split())


@cache
def _shared() -> dict[str, tuple[str, ...]]:
    shared = Table.of_file(_FILE)
    return {topic: tuple(shared.table(topic).texts("wordings", at_least=5)) for topic in shared.names()}


@cache
def _answered() -> frozenset[str]:
    """The topics that some kata answers."""
    return frozenset(
        topic
        for slug in catalog.slugs()
        for number in range(1, len(content.of_kata(slug).questions) + 1)
        for topic in _topics(slug, number)
    )


def wordings() -> dict[str, list[str]]:
    """Every topic with its wordings, of all katas."""
    texts = {topic: list(every) for topic, every in _shared().items()}
    for slug in catalog.slugs():
        for number, one in enumerate(content.of_kata(slug).questions, 1):
            texts.setdefault(_topics(slug, number)[0], []).extend((one.ask, *one.wordings))
    return {topic: list(dict.fromkeys(every)) for topic, every in texts.items()}


def _topics(slug: str, number: int) -> tuple[str, ...]:
    """The topics of a question, the main one first; a question without one is a topic of its own."""
    return content.of_kata(slug).questions[number - 1].topics or (f"{slug} {number}",)
