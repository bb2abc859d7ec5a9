"""What code shows that has no reading: with weights of its own, in the calls that run."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import torch

from attn_kata.diagnosis import flow, own_exceptions
from attn_kata.diagnosis.flow.shown import Flow, Shown
from attn_kata.properties.failures import AttemptRaised, PropertyFailed, Raised
from attn_kata.properties.handle import Function, Handle
from attn_kata.protocol import wire
from attn_kata.readings.adapters import adapter, free_calls
from attn_kata.readings.candidates import building
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching import certain
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source.structure import Definition, code_of

MOST_BUILDS = 6  # of one definition
MOST_RAISING = 8  # calls that are asked what they raise


def shown(search: Search, definition: Definition, until: float) -> list[Shown]:
    """The mistakes that calls of the code show, and that no call denies. Raises AttemptDied.

    A call may give it inputs that it is not meant for. What is right in none of them is wrong in the one that is meant. After
    `until` (monotonic) no more is called, and nothing is said.
    """
    for of_sequences in (True, False):
        for reading in _built(search, definition):
            found = _shown(search, reading, definition, until, of_sequences=of_sequences)
            if found is not None:
                return found
    return []


def _built(search: Search, definition: Definition) -> list[Reading]:
    if not definition.is_class:
        return [Reading(kata=search.contract.kata, entry=definition.name, is_class=False)]
    processor = "cuda" in search.structure.text(definition)
    every = building.buildings(definition, search.structure, search.contract)
    return [replace(one, processor=processor) for one in itertools.islice(every, MOST_BUILDS)]


def _shown(
    search: Search, reading: Reading, definition: Definition, until: float, *, of_sequences: bool
) -> list[Shown] | None:
    """Those of one way to build it, in calls with sequences or without; None where no call mixes anything.

    [] after `until`: what the calls would show that were not tried is not known.
    """
    if search.attempt.adapt(adapter.of_free_calls(reading, definition)).status != wire.OK:
        return None
    call = getattr(Handle(search.attempt, {}), free_calls.CALL)
    told: list[Flow] = []
    forms = free_calls.forms(definition)
    for number, form in enumerate(forms):
        if form.of_sequences != of_sequences:
            continue
        if time.monotonic() > until:
            return []
        try:
            steps = call.trace(number).steps
        except PropertyFailed:
            continue
        if flow.has_mixed(steps) and not flow.is_stretched(steps):
            told.append(flow.of(steps, free_calls.WIDTH))
    if not told:
        numbers = [number for number, form in enumerate(forms) if form.of_sequences == of_sequences]
        return _raised_by_itself(search, definition, list(_raised(call, numbers[:MOST_RAISING], until))) or None
    # A size may stand for something else in another call: the likeliest call says what it is.
    found = {(one.family, one.line): one for each in reversed(told) for one in each.mistakes}
    return [one for one in found.values() if not any(each.denies(one) for each in told)]


def _raised(call: Function, numbers: list[int], until: float) -> Iterator[Raised]:
    """What these calls raise, as long as there is time."""
    for number in numbers:
        if time.monotonic() > until:
            return
        try:
            call(number)
        except AttemptRaised as failed:
            yield failed.raised
        except PropertyFailed:
            continue


def _raised_by_itself(search: Search, definition: Definition, raised: list[Raised]) -> list[Shown]:
    """The mistakes for which calls raise, in lines behind which no call comes: none that another input could do without."""
    text = search.structure.text(definition)
    found = {}
    for one in raised:
        if one.line is None or not certain.is_own_mistake(one, text, search.structure):
            continue
        later = [each for each in raised if each.line is not None and each.frames[-1][1] == one.frames[-1][1]]
        id = own_exceptions.mistake(one, code_of(text), search.structure.line(one.line))
        whatever = id in _WHATEVER_IT_IS_GIVEN or one.types[0] in ("NameError", "UnboundLocalError")
        whatever = whatever or _is_of_torch(one, search)
        if id is not None and whatever and all((each.line or 0) <= one.line for each in later):
            found[id] = Shown(id=id, line=one.line)
    return list(found.values())


_WHATEVER_IT_IS_GIVEN = ("numerics.root_of_number", "python.size_called", "python.not_called", "module.no_super")


def _is_of_torch(one: Raised, search: Search) -> bool:
    """Whether a function of torch was given a name that it does not have: F.dropout(x, train=True)."""
    named = re.match(r"(\w+)\(\) got an unexpected keyword argument", one.text)
    if one.types[0] != "TypeError" or named is None or search.structure.find(named[1]) is not None:
        return False
    of_torch = search.structure.imports.get(named[1], "torch").startswith("torch")
    return of_torch and callable(getattr(torch.nn.functional, named[1], None))
