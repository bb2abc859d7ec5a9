"""What code read as self-attention does with keys and values from elsewhere, which that reading never gives it.

It may ignore those that it must be given, or take those that it can be given for queries.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from attn_kata.diagnosis.outcomes import about_shapes
from attn_kata.readings.candidates import roles
from attn_kata.readings.choice import Beside
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import answers, fits, mistakes
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import usage
from attn_kata.readings.source.structure import Definition, tree_of

_OTHER = "x.flip(-1)"  # other numbers of the same shape
_TWICE = "x.repeat(1, 2, 1)"  # longer, and each key twice changes nothing
_OF_ONE_SEQUENCE = re.compile(r"(?i)self|causal")


def beside(search: Search, reading: Reading, definition: Definition) -> tuple[Beside, ...]:
    """That the keys or the values of its call have no part in the result. Not where it says that all three are the same."""
    contract = search.contract
    if not (contract.is_self and contract.is_module) or reading.by_token or reading.square:
        return ()
    if _OF_ONE_SEQUENCE.search(definition.name):
        return ()
    what = roles.call_inputs(definition)
    asked_for = [one.name for one in definition.call if one.default is None and what.get(one.name) in ("k", "v")]
    given = dict(reading.call)
    of_x = [name for name in asked_for if given.get(name) == "x"]
    if not of_x or "x" not in [value for name, value in reading.call if name not in of_x]:
        return ()
    if usage.is_given_its_own_alone(definition, search.structure):
        return ()
    ignored = [name for name in of_x if _has_no_part(search, reading, name)]
    if not ignored or any(_is_used_in_a_branch(definition, name) for name in ignored):
        return ()
    way = f"--kata {contract.kata} --read square=yes"  # as another kata, it has keys of its own
    words = f"other numbers for {' and '.join(ignored)} change nothing. If it is for self-attention only: {way}"
    return (Beside(ids=("context.ignored",), property="values", words=words),)


def of_another_length(search: Search, reading: Reading, definition: Definition) -> tuple[Beside, ...]:
    """That a context which its call may be given makes it raise, or changes how many rows there are, if it is longer than x.

    Not where x itself as the context makes it another attention, or raises: what it means by one is something else.
    """
    contract = search.contract
    if not (contract.is_self and contract.is_module) or reading.order != "batch" or reading.dims:
        return ()
    if reading.by_token or reading.square or reading.one_length or reading.causal or reading.needs_mask:
        return ()
    what, given = roles.call_inputs(definition), dict(reading.call)
    open_ = [one.name for one in definition.call if one.default == "None" and given.get(one.name) in (None, "None")]
    contexts = [name for name in open_ if what.get(name) in ("context", "k", "v")]
    if not contexts or usage.is_given_its_own_alone(definition, search.structure):
        return ()
    of_x, longer = (search.unmasked(_with(reading, contexts, value)) for value in ("x", _TWICE))
    if mistakes(of_x, 0) != 0 or (answers(longer) and fits(longer)):
        return ()
    raised = [one for _, each in longer for one in each.raised]
    if not all(one.frames and about_shapes(one.text) for one in raised):
        return ()
    said = f"raises {raised[0].text.splitlines()[0]}{raised[0].where}" if raised else "gives as many rows as that has"
    words = f"where {' and '.join(contexts)} has more tokens than x, it {said}"
    return (Beside(ids=("context.swapped", "context.query_length", "context.ignored"), property="values", words=words),)


def _with(reading: Reading, names: list[str], value: str) -> Reading:
    """The reading with this value for each of these inputs of the call."""
    others = tuple(pair for pair in reading.call if pair[0] not in names)
    return replace(reading, call=(*others, *((name, value) for name in names)))


def _has_no_part(search: Search, reading: Reading, name: str) -> bool:
    """Whether the result is the same, and right, with other numbers for one input."""
    other = _with(reading, [name], _OTHER)
    return mistakes(search.masked(other) if reading.needs_mask else search.unmasked(other), 0) == 0


def _is_used_in_a_branch(definition: Definition, name: str) -> bool:
    """Whether a branch gives this input to something: as in BART, a switch of the constructor decides whether it is used."""
    branches = [one for one in ast.walk(tree_of(definition.text)) if isinstance(one, ast.If)]
    calls = [one for each in branches for part in (*each.body, *each.orelse) for one in ast.walk(part)]
    return any(
        isinstance(given, ast.Name) and given.id == name
        for one in calls
        if isinstance(one, ast.Call)
        for given in one.args
    )
