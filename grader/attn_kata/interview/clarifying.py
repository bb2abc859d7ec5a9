"""Finds the content's question that a candidate means, asked in the candidate's own words.

The wordings of `interview.toml` and `topics.toml` are sorted by topic. A text is compared with every topic: each of its
words, and each pair of neighbours, speaks for the topics where it is more frequent than elsewhere (naive Bayes). Words
are compared without endings, with this field's synonyms folded together and typing errors mended (rapidfuzz).

A question is found only if enough speaks for it, if it is clearly ahead of the kata's other questions, and if no topic
that the kata does not answer is far ahead. No answer is better than the answer to another question.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rapidfuzz import fuzz, process

from attn_kata import catalog
from attn_kata.interview import content
from attn_kata.tables import Table

NEAR, CLEAR, BEHIND = 1.0, 0.4, 2.0  # least score, least lead in the kata, how far another topic may be ahead
LONGEST = 500  # characters of a text that are read
UNKNOWN = "Decide yourself, and write down what you assumed."
_SMOOTHING, _FLOOR, _UNKNOWN_WORD, _PAIR = 3.0, 0.7, 0.3, 0.5
_TYPO = 82  # of 100: how alike a mistyped word and a known one are
_FILE = Path(__file__).with_name("topics.toml")

_SILENT = """
a about actually after all also am an any as at be been but by could did do does doing for from get give given had has have
hello hi how i if im in into is it its just know let like me my need now of ok okay on or our please really say shall should
so some something sure tell than thanks that the their them then there these they thing this those to too up us use using
want was we well were what whats when where which while who why will with would you your yes wondering right exactly
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
valid real
hidden hide block blocked ignore ignored
"""
_FOLD: Mapping[str, str] = {word: line.split()[0] for line in _SYNONYMS.strip().splitlines() for word in line.split()}
_WORD = re.compile(r"[a-z0-9_%]+")
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "ly")
_PART = re.compile(r"[?\n;]+|(?<=\w)\. ")


@dataclass(frozen=True, kw_only=True)
class _Corpus:
    """How many wordings of each topic have a word or a pair of words."""

    counts: Mapping[str, Counter[str]]
    wordings: Mapping[str, int]
    share: Mapping[str, float]  # of all wordings that have it
    words: tuple[str, ...]


def heard(slug: str, text: str) -> list[int]:
    """The numbers (from 1) of the kata's questions that the text asks, sentence by sentence, each once."""
    parts = [part for part in _PART.split(text[:LONGEST]) if _words(part)]
    found = [number for part in parts for number in [_nearest(slug, part)] if number is not None]
    if not found and len(parts) > 1:
        whole = _nearest(slug, text)
        found = [whole] if whole is not None else []
    return list(dict.fromkeys(found))


def _nearest(slug: str, text: str) -> int | None:
    scores = _scores(text[:LONGEST])
    every = range(1, len(content.of_kata(slug).questions) + 1)
    own = {topic for number in every for topic in _topics(slug, number)}
    ranked = sorted(((max(scores[topic] for topic in _topics(slug, number)), number) for number in every), reverse=True)
    others = max((score for topic, score in scores.items() if topic not in own), default=0.0)
    best, number = ranked[0]
    found = best >= NEAR and best - ranked[1][0] >= CLEAR and best + BEHIND >= others
    return number if found else None


def _scores(text: str) -> dict[str, float]:
    """How much speaks for each topic."""
    known = _corpus()
    words = [_mended(word, known.words) for word in _words(text)]
    seen = [one for one in _with_pairs(words) if one in known.share]
    unknown = sum(1 for word in set(words) if word not in known.share)
    made = {}
    for topic, counts in known.counts.items():
        score = -_UNKNOWN_WORD * unknown
        for one in seen:
            share = known.share[one]
            here = (counts[one] + _SMOOTHING * share) / (known.wordings[topic] + _SMOOTHING)
            score += (_PAIR if " " in one else 1.0) * max(math.log(here / share), -_FLOOR)
        made[topic] = score
    return made


@cache
def _corpus() -> _Corpus:
    table = Table.of_file(_FILE)
    texts = {topic: list(table.table(topic).texts("wordings", at_least=5)) for topic in table.names()}
    for slug in catalog.slugs():
        for number, one in enumerate(content.of_kata(slug).questions, 1):
            texts.setdefault(_topics(slug, number)[0], []).extend((one.ask, *one.wordings))
    counts = {
        topic: Counter(one for text in every for one in _with_pairs(_words(text))) for topic, every in texts.items()
    }
    whole = sum(map(len, texts.values()))
    total: Counter[str] = sum(counts.values(), Counter())
    return _Corpus(
        counts=counts,
        wordings={topic: len(every) for topic, every in texts.items()},
        share={one: (count + 0.5) / (whole + 1) for one, count in total.items()},
        words=tuple(sorted({one for one in total if " " not in one} | set(_FOLD))),
    )


def _topics(slug: str, number: int) -> tuple[str, ...]:
    """The topics of a question, the main one first; a question without one is a topic of its own."""
    return content.of_kata(slug).questions[number - 1].topics or (f"{slug} {number}",)


def _with_pairs(words: list[str]) -> set[str]:
    return {*words, *(f"{one} {other}" for one, other in itertools.pairwise(words))}


def _words(text: str) -> list[str]:
    plain = text.lower().replace("'", "").replace("’", "").replace("-inf", " neginf ")
    return [_folded(word) for word in _WORD.findall(plain) if word not in _STOP]


def _folded(word: str) -> str:
    stem = next((word[: -len(end)] for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= 3), word)
    return _FOLD.get(word) or _FOLD.get(stem) or stem


def _mended(word: str, known: Iterable[str]) -> str:
    """The known word that a mistyped one was meant to be."""
    if len(word) < 4 or word in known:
        return word
    found = process.extractOne(word, [one for one in known if len(one) > 3], scorer=fuzz.ratio, score_cutoff=_TYPO)
    return _folded(found[0]) if found else word
