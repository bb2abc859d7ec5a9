"""How many dimensions code takes: one sequence or a batch, with heads before the tokens or without."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from attn_kata.readings.candidates import layouts
from attn_kata.readings.searching.behaviour import Ranked, answers, fits, mistakes, partly
from attn_kata.readings.searching.search import MOST_MISTAKES

if TYPE_CHECKING:
    from attn_kata.readings.searching.definition_search import DefinitionSearch

# A .T of what is no parameter.
_REVERSES = re.compile(r"(?<!weight)\.T\b")
_ONE_BY_T = (
    "It takes one sequence only: .T reverses all dimensions. If it is meant for a batch, this is layout.T_of_batch"
)
_ONE_SEQUENCE = "It is right for one sequence, (T, E). If you meant that: --read dims=2"


def of_any_rank(one: DefinitionSearch, ranked: Ranked) -> Ranked:
    """The reading; but of any number of dimensions for a function, and of a batch for a module, that raises for none.

    Read for two alone, a softmax along dimension 1, or along none that is named, would be right.
    """
    has_batch = not one.contract.is_module or "dims" in one.contract.left_out
    if ranked.reading.dims != 2 or not has_batch or "dims" in one.given or layouts.says_one_sequence(one.text):
        return ranked
    whole = replace(ranked.reading, dims=3 if one.contract.is_module else 0)
    asked = one.search.unmasked(whole)
    if partly(asked) or not fits(asked):
        reverses = _REVERSES.search(one.code) is not None
        if reverses and layouts.speaks_of_batch(one.definition):
            return replace(ranked, reading=whole, mistakes=MOST_MISTAKES + 1)
        one.said += (_ONE_BY_T,) * reverses
        return ranked
    count = mistakes(asked, MOST_MISTAKES)
    if count != 0 and not ranked.mistakes:
        one.said += (_ONE_SEQUENCE,)
    return replace(ranked, reading=whole, mistakes=MOST_MISTAKES + 1 if count is None else count)


def say_one_sequence(one: DefinitionSearch, ranked: Ranked) -> None:
    """Note that code which nothing explains, as it folds a batch into its tokens, is right for one sequence."""
    is_open = ranked.answers and ranked.mistakes > MOST_MISTAKES and "dims" not in one.given
    if not is_open or not (one.contract.is_self or one.contract.takes_qkv) or _ONE_SEQUENCE in one.said:
        return
    single = one.search.unmasked(replace(ranked.reading, dims=2))
    if answers(single) and mistakes(single, 0) == 0:
        one.said += (_ONE_SEQUENCE,)


def of_usual_rank(one: DefinitionSearch, ranked: Ranked) -> Ranked:
    """The reading; but with heads or a batch before the tokens, for a function that cannot do without: "b ... t d"."""
    if one.contract.is_module or ranked.reading.dims or ranked.mistakes or "dims" in one.given:
        return ranked
    if answers(one.search.unmasked(replace(ranked.reading, dims=2))):
        return ranked
    for dims in (4, 3):
        usual = replace(ranked.reading, dims=dims)
        asked = one.search.unmasked(usual)
        if answers(asked) and mistakes(asked, 0) == 0:
            return replace(ranked, reading=usual)
    return ranked
