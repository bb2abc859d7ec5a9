"""Finds the content's question that a candidate means, asked in the candidate's own words.

The wordings of `interview.toml` and `topics.toml` are sorted by topic: each topic is one text. SQLite's full-text search
ranks the topics by BM25 for the words of the question and for each pair of neighbours. Typing errors are mended with
rapidfuzz first, and words that mean the same in this field are made one. See docs/decisions/0020-questions-by-bm25.md.

A question is found only if enough speaks for it, if it is clearly ahead of the kata's other questions, and if no topic
that the kata does not answer is ahead. No answer is better than the answer to another question.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rapidfuzz import fuzz, process

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.interview import content
from attn_kata.tables import Table

NEAR, CLEAR = 2.0, 0.2  # least score; least lead over the kata's other questions, as a share
LONGEST = 500  # characters of a text that are read
UNKNOWN = "Decide yourself, and write down what you assumed."
_END = "_"
_TYPO = 82  # of 100: how alike a mistyped word and a known one are
_FILE = Path(__file__).with_name("topics.toml")

_SILENT = """
a about actually after all also am an any as at be been but by could did do does doing for from get give given had has have
hello hi how i if im in into is it its just know let like me my need now of ok okay on or our please really say shall should
so some something sure tell than thanks that the their them then there these they thing this those to too up us use using
want was we well were what whats when where which while who why will with would you your yes wondering right exactly
are being case confirm correct correctly else even gets going guess happen happens here kind needed needs ones possible
possibly question still suppose think understand whether assume wonder wonders really basically
"""
_STOP = frozenset(_SILENT.split())
# Words of this field that mean the same in a question; each line is one word.
_SYNONYMS = """
attend attends attended attending
see sees visible seen
mask masks masked masking
divide divides divided divisible multiple evenly remainder modulo divisibility
error errors raise raises raised exception assert valueerror throw
causal autoregressive triangle triangular tril
dtype dtypes
fp16 half float16 bf16 bfloat16 precision
float32 fp32 float64 double
shape shapes
dim dims dimension dimensions dimensional
size sizes width
bias biases
init initialise initialize initialised initialized initialisation initialization xavier kaiming
length lengths len
seq sequence sequences
return returns returned
output outputs out
fast speed efficient efficiency performance faster optimise optimize
pad pads padded padding paddings
normalise normalize normalised normalized renormalise renormalize normalisation
layernorm layer_norm
scale scaled scaling rescale rescaled
sqrt root
logits logit
probabilities probability probs prob
position positions
dropout drop drops dropped dropping
train training
eval evaluation inference test
concat concatenate concatenated concatenation cat
average averaged mean averages averaging pool pooling pooled
column columns channel channels features feature
project projects projected projection projections proj
layer layers linear
copy clone
inf infinity infinite infinities
empty nothing
allowed allow permitted may can
builtin built-in
gradient gradients grad grads backward backprop
embed_dim d_model e embedding embed dmodel
head heads num_heads
key keys k
query queries q
value values v
weight weights
different differ differs unequal
same equal identical equally
large huge big bigger
random randomness rng
always guaranteed guarantee
token tokens
tq num_queries n_queries
tk num_keys n_keys
valid real
hidden hide block blocked ignore ignored
"""
_FOLD: Mapping[str, str] = {word: line.split()[0] for line in _SYNONYMS.strip().splitlines() for word in line.split()}
_WORD = re.compile(r"[a-z0-9_%]+")
_SENTENCE = re.compile(r"(?:[^?\n;.]|\.(?! ))+\??")


@dataclass(frozen=True, kw_only=True)
class _Known:
    """The topics as a full-text table `topics (name, text)` in memory, and their words."""

    table: sqlite3.Connection
    words: frozenset[str]
    long_words: tuple[str, ...]  # to mend others with


def heard(slug: str, text: str) -> list[int]:
    """The numbers (from 1) of the kata's questions that the text asks, sentence by sentence, each once.

    Beside sentences with a question mark, the others only say why somebody asks. They count where nothing else is found.
    """
    sentences = [one.group() for one in _SENTENCE.finditer(text[:LONGEST]) if _words(one.group())]
    asking = [one for one in sentences if one.endswith("?")] or sentences
    found = [number for one in asking for number in [_nearest(slug, one)] if number is not None]
    if not found and len(sentences) > 1:
        whole = _nearest(slug, text)
        found = [whole] if whole is not None else []
    return list(dict.fromkeys(found))


def _nearest(slug: str, text: str) -> int | None:
    scores = _scores(text[:LONGEST])
    every = range(1, len(content.of_kata(slug).questions) + 1)
    own = {topic for number in every for topic in _topics(slug, number)}
    ranked = sorted(
        ((max(scores.get(topic, 0.0) for topic in _topics(slug, number)), number) for number in every), reverse=True
    )
    others = max((score for topic, score in scores.items() if topic not in own), default=0.0)
    best, number = ranked[0]
    found = best >= NEAR and best * (1 - CLEAR) >= ranked[1][0] and best >= others
    return number if found else None


def _scores(text: str) -> dict[str, float]:
    """How much speaks for each topic, where anything does."""
    known = _known()
    words = [_mended(word, known) for word in _words(text)]
    asked = {*words, *(f"{one} {other}" for one, other in itertools.pairwise(words))}
    if not asked:
        return {}
    query = " OR ".join(f'"{one}"' for one in sorted(asked))
    found = known.table.execute("SELECT name, -bm25(topics) FROM topics WHERE text MATCH ?", (query,))
    return dict(found.fetchall())


@cache
def _known() -> _Known:
    """Raises UsageError where SQLite was built without full-text search."""
    texts = wordings()
    lines = {topic: [" ".join(_words(one)) for one in every] for topic, every in texts.items()}
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
    apart = f" {_END} "  # no pair of neighbours goes over the end of a wording
    table.executemany(
        "INSERT INTO topics VALUES (?, ?)", [(topic, apart.join(every)) for topic, every in lines.items()]
    )
    words = {word for every in lines.values() for one in every for word in one.split()} | set(_FOLD)
    return _Known(
        table=table, words=frozenset(words), long_words=tuple(sorted(word for word in words if len(word) > 3))
    )


def wordings() -> dict[str, list[str]]:
    """Every topic with its wordings, of all katas."""
    shared = Table.of_file(_FILE)
    texts = {topic: list(shared.table(topic).texts("wordings", at_least=5)) for topic in shared.names()}
    for slug in catalog.slugs():
        for number, one in enumerate(content.of_kata(slug).questions, 1):
            texts.setdefault(_topics(slug, number)[0], []).extend((one.ask, *one.wordings))
    return texts


def _topics(slug: str, number: int) -> tuple[str, ...]:
    """The topics of a question, the main one first; a question without one is a topic of its own."""
    return content.of_kata(slug).questions[number - 1].topics or (f"{slug} {number}",)


def _words(text: str) -> list[str]:
    plain = text.lower().replace("'", "").replace("’", "").replace("-inf", " neginf ")
    return [_FOLD.get(word, word) for word in _WORD.findall(plain) if word not in _STOP]


def _mended(word: str, known: _Known) -> str:
    """The known word that a mistyped one was meant to be."""
    if len(word) < 4 or word in known.words:
        return word
    found = process.extractOne(word, known.long_words, scorer=fuzz.ratio, score_cutoff=_TYPO)
    return _FOLD.get(found[0], found[0]) if found else word
