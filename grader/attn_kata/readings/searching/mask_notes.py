"""What is said of a definition beside its reading: masks that it takes and does not use, or that were not tried."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from attn_kata.properties.failures import Raised
from attn_kata.readings.candidates import masks, roles, scores
from attn_kata.readings.choice import Beside
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import mistakes
from attn_kata.readings.source import vocabulary

if TYPE_CHECKING:
    from attn_kata.readings.searching.definition_search import DefinitionSearch

_WITH_HEADS = ("any", "(B, H, T, T)", "(B, 1, T, T)", "(T, T)", "(B, 1, 1, T)")  # not (B, T, T)


def mask_untried(one: DefinitionSearch, reading: Reading) -> str:
    """The parameter that takes a mask, where the reading leaves it out; or ""."""
    passed = any(value == "mask" for _, value in reading.call)
    return "" if passed or one.parameter is None else one.parameter.name


def masks_untried(one: DefinitionSearch, reading: Reading) -> tuple[str, ...]:
    """The other parameters of the call that take masks, and are left out: those that were not tried apart."""
    others = roles.other_masks(one.definition, reading, one.contract)
    return tuple(name for name in others if name not in one.right_beside and name not in never_read(one, others))


def never_read(one: DefinitionSearch, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the names that the code has nowhere but among its parameters, and where it does nothing."""
    code = re.sub(r"if \w+ is (?:not )?None\s*:\s*pass\b|\bdel \w+\b|\b_ = \w+$", "", one.code, flags=re.MULTILINE)
    return tuple(name for name in names if len(re.findall(rf"\b{re.escape(name)}\b", code)) == 1)


def notes(one: DefinitionSearch, reading: Reading, *, answers: bool) -> tuple[str, ...]:
    """What is to be said of the masks that the code takes, and of its dimensions, in sentences.

    `answers`: whether the code does so under the reading, and does not raise in every call.
    """
    others = roles.other_masks(one.definition, reading, one.contract)
    if not any(value == "mask" for _, value in reading.call):
        others = tuple(one.name for one in one.definition.call if vocabulary.input_of(one.name) == "mask")
    said = [
        f"The call takes {name}, and nothing reads it. If it is meant to hide keys, this is mask.lost"
        for name in never_read(one, others)
    ]
    said += [
        f"Its constructor takes {name}, and nothing reads it. If it is meant to hide keys, this is mask.lost"
        for name in never_read(one, tuple(one.name for one in one.definition.build if "mask" in one.name.lower()))
    ]
    if reading.returns_weights and (after := scores.layers_after(one.definition)):
        said.append(f"Its output goes through {after[0]} and is not graded: its weights are")
    if reading.returns_weights and one.contract.has_score and scores.joins_query(one.definition):
        said.append("Its output is the query beside the context, and is not graded: its weights are")
    if raised := without_mask(one, reading, answers=answers):
        why = f": {raised.text.partition(' - got')[0][:100]}" if raised.text else ""
        said.append(
            f"The mask is optional (its default is None), but without it the code raises {raised.types[0]}{why}. "
            "Everything else is graded with a mask in every call"
        )
    return (*dict.fromkeys(one.said), *said)


def beside(one: DefinitionSearch, reading: Reading, *, answers: bool) -> tuple[Beside, ...]:
    """That the code cannot take a mask of the shape that it documents, (B, Tq, Tk), where it has heads."""
    parameter = one.parameter
    said = None if parameter is None else masks.documented_for_samples(one.definition.text, parameter.name)
    if said is None or not answers or not one.contract.has_heads or reading.shape not in _WITH_HEADS:
        return ()
    if reading.mask in ("none", "lengths"):
        return ()
    is_of_keys = re.search(r"[,x×]\s*1\s*[,x×]", said) is not None
    asked = one.search.masked(replace(reading, shape="(B, 1, T)" if is_of_keys else "(B, T, T)"))
    if mistakes(asked, 0) == 0:
        return ()
    name = parameter.name  # type: ignore[union-attr]
    words = f"the code documents {name} as {said}; with that shape it raises, or the batch of the mask meets the heads"
    return (Beside(ids=("mask.broadcast",), property="mask", words=words),)


def without_mask(one: DefinitionSearch, reading: Reading, *, answers: bool) -> Raised | None:
    """What code that is asked with a mask in every call raises without one, where the call allows to leave it out."""
    parameter = one.parameter
    if not answers or not reading.needs_mask or parameter is None or parameter.default != "None":
        return None
    if _is_asked_for(one, parameter.name):
        return None
    call = tuple((name, value) for name, value in reading.call if value != "mask")
    without = replace(reading, mask="none", needs_mask=False, call=call)
    return next(iter(one.search.exceptions(without, one.search.unmasked)), None)


def _is_asked_for(one: DefinitionSearch, mask: str) -> bool:
    """Whether a mask must be given though its default is None: the query has that default too, or the code asks for it."""
    queries = [each.default for each in one.definition.call if vocabulary.input_of(each.name) in ("x", "q")]
    asserted = re.search(rf"assert {re.escape(mask)} is not None|if {re.escape(mask)} is None\s*:\s*raise\b", one.code)
    return asserted is not None or "None" in queries
