"""The words of a question as the matcher sees them: without those that say nothing, and with one word for each meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rapidfuzz import process
from rapidfuzz.distance import OSA

# Who is spoken of is kept ("you", "my"): it tells small talk from questions about the task.
_SILENT = """
a about actually after all also am an and any as at be been but by can could did do does doing for from get give given
had has having hello hi how if im in into is it its just know let like may might need now of ok okay on or our please
really say shall should so some something sure tell than thanks that the their them then there these they thing this
those to too up us use using want was we well were what whats where which while why will with would yes wondering
right exactly are being case confirm correct correctly else even gets going guess happen happens here kind needed
needs ones possible possibly question still suppose think understand whether assume wonder wonders basically thats id
ill ive youd dont doesnt isnt cant wont shouldnt didnt arent theres lets maybe perhaps quick quickly check checking
double-check clarify wanna anyway intend someone find found stay fine expected wanted whatsoever simply somehow
already gonna hmm um uh hey sorry must
"""
# Words of this field that mean the same in a question; each line is one word.
_SYNONYMS = """
attend attends attended attending
see sees visible seen
mask masks masked masking attn_mask
divide divides divided dividing division
divisible multiple multiples evenly remainder modulo divisibility indivisible divisor
error errors raise raises raised exception exceptions assert valueerror throw throws
causal autoregressive
triangle triangular tril triu
dtype dtypes floating
fp16 half float16 bf16 bfloat16 precision
float32 fp32 float64 fp64 double doubles
shape shapes
dim dims dimension dimensions dimensional
size sizes width widths
bias biases
init initialise initialize initialised initialized initialisation initialization initializer xavier kaiming
length lengths len
seq sequence sequences
return returns returned returning
output outputs out
fast speed efficient efficiency performance faster optimise optimize optimised optimized
pad pads padded padding paddings filler
normalise normalize normalized normalised renormalise renormalize normalisation normalization
layernorm layer_norm
scale scales scaled scaling rescale rescaled
sqrt root
logits logit
probabilities probs
probability prob
position positions
dropout drop drops dropped dropping
train training
eval evaluation inference
concat concatenate concatenated concatenation cat
average averaged averages averaging pool pooling pooled
column columns channel channels features feature
project projects projected projecting projection projections proj
layer layers linear
copy clone
inf infinity infinite infinities
empty nothing
allowed allow allows permitted permit permits forbidden banned legal legit cheating prohibited
builtin built-in
gradient gradients grad grads backward backprop derivative derivatives
embed_dim d_model e embedding embed dmodel
head heads num_heads
key keys k
query queries q
value values v
weight weights
different differ differs unequal difference unlike
same equal identical equally match matches matching
large huge big bigger larger
random randomness rng
always guaranteed guarantee guarantees
token tokens
tq num_queries n_queries
tk num_keys n_keys
valid real actual genuine
hidden hide hides blocked ignore ignored ignores invisible
neighbouring neighboring neighbour neighbor neighbours neighbors adjacent consecutive
interleaved interleave interleaving
newest latest
axis axes
max maximum biggest largest
save saved store stored stash
odd uneven
loop loops looping iterate iterating iteration
first beginning start front
new fresh
sum total
alias aliases aliasing share shares
"""
_STOP = frozenset(_SILENT.split())
_FOLD: Mapping[str, str] = {word: line.split()[0] for line in _SYNONYMS.strip().splitlines() for word in line.split()}
_WORD = re.compile(r"[a-z0-9_%]+")
# What one word means is told by the words beside it: the mean of numbers, and what something means.
_PLAIN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"['’]"), ""),
    (re.compile(r"-inf\b|minus inf\w*|negative inf\w*"), " neginf "),
    (re.compile(r"\bsquare[- ]root\b"), "sqrt"),
    (re.compile(r"\b(the|a|weighted|plain|masked|take|simple) mean\b|\bmean(?=[- ](over|of|pool|across))"), "average"),
    (re.compile(r"\bln\b"), "layernorm"),
)
LEAST_MENDED = 5  # letters of a word that is mended


def words(text: str) -> list[str]:
    """The words of a text that say something, in order; those that mean the same are the same."""
    plain = text.lower()
    for pattern, by in _PLAIN:
        plain = pattern.sub(by, plain)
    return [_FOLD.get(word, word) for word in _WORD.findall(plain) if word not in _STOP]


def known_words(every: Iterable[str]) -> frozenset[str]:
    """The words that are not mended: those given, and those of this module."""
    return frozenset(every) | _STOP | frozenset(_FOLD)


def mended(word: str, known: frozenset[str]) -> str | None:
    """The word that a mistyped one was meant to be, None if that says nothing: one letter wrong, or two swapped."""
    if len(word) < LEAST_MENDED or word in known or not word.isalpha():
        return word
    near = [one for one in known if one[0] == word[0] and abs(len(one) - len(word)) <= 1 and len(one) >= LEAST_MENDED]
    found = process.extractOne(word, near, scorer=OSA.distance, score_cutoff=1)
    if found is None:
        return word
    return None if found[0] in _STOP else _FOLD.get(found[0], found[0])
