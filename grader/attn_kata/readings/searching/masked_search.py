"""The search for the form of a definition's mask, after what it computes without one is known."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from attn_kata.readings.candidates import roles
from attn_kata.readings.candidates.building import LOOK
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching import certain, mask_notes
from attn_kata.readings.searching.behaviour import Ranked
from attn_kata.readings.searching.construction import OF_MASKS
from attn_kata.readings.searching.mask_choice import MaskChoice
from attn_kata.readings.searching.search import MOST_MISTAKES
from attn_kata.readings.source import vocabulary

if TYPE_CHECKING:
    from attn_kata.readings.searching.definition_search import DefinitionSearch

ONE_LENGTH = "With a mask it takes sequences of one length only. If it should take others, this is mask.fixed_size"
MOST_OTHER_MASKS = 2  # that are tried beside the first


def with_mask(one: DefinitionSearch, ranked: Ranked) -> Ranked | None:
    """The reading with the mask, in the form that needs the fewest mistakes."""
    contract = one.contract
    by_itself = None if ranked.answers else _failing_by_itself(one, ranked.reading)
    if by_itself is not None:  # in every call, so no mistake explains it
        return by_itself
    choice = _choice(one, ranked.reading)
    found = choice.best(one.forms.every(ranked.reading))
    if (found is None or not found.answers or found.mistakes) and _has_one_length(one, ranked.reading):
        of_one_length = replace(ranked.reading, one_length=True, square=contract.takes_qkv or ranked.reading.square)
        right = _choice(one, of_one_length).best(one.forms.every(of_one_length))
        if right is not None and right.answers and not right.mistakes:
            one.said += (ONE_LENGTH,)
            found = right
    unexplained = found is None or not found.answers or found.mistakes > MOST_MISTAKES
    if unexplained and not contract.is_module and "square" not in one.given:
        one_shape = replace(ranked.reading, square=True, alike="alike" not in one.given or ranked.reading.alike)
        square = choice.best(one.forms.every(one_shape))
        says_more = square is not None and (
            found is None or (square.answers, -square.mistakes) > (found.answers, -found.mistakes)
        )
        found = square if says_more else found
    found = one.search.in_float32(found, one.search.masked)  # it may compute in float32 where there is a mask alone
    if not contract.is_module and not ranked.reading.dims and (found is None or found.mistakes > MOST_MISTAKES):
        found = _of_one_rank(one, ranked) or found  # its mask says how many dimensions it takes
    if found is None:
        return None
    if ranked.answers and not found.answers:
        found = _failing_by_itself(one, ranked.reading) or found
    of_mask = {
        name: getattr(found.reading, name)
        for name in (*OF_MASKS, "call", "hides_queries", "square", "alike", "dims", "one_length")
    }
    ties = (*found.ties, *(replace(each, **of_mask) for each in ranked.ties))
    least = 0 if found.mistakes <= MOST_MISTAKES else ranked.mistakes
    return replace(found, mistakes=max(found.mistakes, least), ties=ties)


def _choice(one: DefinitionSearch, reading: Reading) -> MaskChoice:
    return MaskChoice(
        ask=one.search.masked,
        unmasked=one.search.unmasked(reading),
        none_explains=MOST_MISTAKES + 1,
        of_tokens=one.contract.mask == "scores" and not one.contract.is_cross,
        if_square=one.contract.takes_qkv,
    )


def _has_one_length(one: DefinitionSearch, reading: Reading) -> bool:
    """Whether code that is built for a length raises about it where it gets a mask."""
    if not one.contract.is_module or "one_length" in one.given or "L" not in dict(reading.sizes).values():
        return False
    raised = (text for form in one.forms.every(reading) for text in one.search.raised(form, one.search.masked))
    return any(re.search(rf"\b{LOOK['L']}\b", text) for text in raised)


def with_another_mask(one: DefinitionSearch, masked: Ranked, ranked: Ranked) -> Ranked:
    """The reading; but with another mask of the call in the place of the first, where that one is wrong in a known way."""
    if masked.mistakes or "call" in one.given or "mask" in one.given or one.contract.with_mask is not None:
        return masked
    for name in roles.other_masks(one.definition, masked.reading, one.contract)[:MOST_OTHER_MASKS]:
        if name in mask_notes.never_read(one, (name,)):
            continue
        others = {each.name for each in one.definition.call if vocabulary.input_of(each.name) == "mask"} - {name}
        alone = replace(one.definition, call=tuple(each for each in one.definition.call if each.name not in others))
        found = with_mask(replace(one, definition=alone), ranked)
        if found is None or not found.answers or found.mistakes > MOST_MISTAKES:
            continue
        if found.mistakes:
            first = next(name for name, value in masked.reading.call if value == "mask")
            one.right_beside += (first,)
            one.said += (f"With {first} it is right as read. This is about {name}, given alone",)
            return found
        one.right_beside += (name,)
    return masked


def in_place_of_its_own(one: DefinitionSearch, readings: list[Reading]) -> Ranked | None:
    """The reading of code that hides later keys only where it is given no mask, if it is right with one; else None."""
    if {"causal", "mask"} & set(one.given):
        return None
    found = one.best(one.forms.needing([replace(each, causal=False) for each in readings]))
    masked = None if found is None or found.mistakes or not found.answers else with_mask(one, found)
    if masked is None or masked.mistakes or not masked.answers:
        return None
    one.said += ("Where it is given no mask, it hides later keys, and that is right, too",)
    return masked


def _failing_by_itself(one: DefinitionSearch, reading: Reading) -> Ranked | None:
    """Of code that raises with every mask, the form that it takes up to a mistake of its own; or None."""
    one_each = {form.shape: form for form in reversed(list(one.forms.every(reading)))}
    for form in reversed(one_each.values()):
        if certain.raises(form, one.search, one.definition):
            return Ranked(mistakes=MOST_MISTAKES + 1, reading=form, answers=False)
    return None


def _of_one_rank(one: DefinitionSearch, ranked: Ranked) -> Ranked | None:
    """A function with its mask, with so many dimensions that a known number of mistakes explains it; else None."""
    for dims in (4, 3) if "dims" not in one.given else ():
        found = with_mask(one, replace(ranked, reading=replace(ranked.reading, dims=dims)))
        if found is not None and found.answers and found.mistakes <= MOST_MISTAKES:
            return found
    return None
