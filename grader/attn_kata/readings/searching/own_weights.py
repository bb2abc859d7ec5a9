"""Calls code with the weights that it makes itself: whether its layers fit one another.

A reading lays the kata's weights into the code's layers, and those always fit. Where code that passes raises with its own
weights, a layer has the wrong size, or its size was read wrong.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attn_kata.diagnosis.outcomes import about_shapes
from attn_kata.properties.failures import AttemptDied, AttemptRaised, PropertyFailed, Raised
from attn_kata.properties.handle import Handle
from attn_kata.protocol import wire
from attn_kata.readings.adapters import adapter
from attn_kata.readings.asking.limited import Limited
from attn_kata.readings.candidates.building import LOOK
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, code_of

_TOKENS = 5  # no size of LOOK is one of them
_OTHER_SIZE = 5  # of a head: not E / H
_OTHER_WIDTH = 36  # that the heads divide, too
_DIVISOR = 2  # of the width of all heads, so that each still has one of its own
_WIDTHS = ("E", "C", "I", "D", "V")  # the symbols of the sizes of a vector
_WANTED = re.compile(r"shapes cannot be multiplied \(\d+x\d+ and (\d+)x")
_FACTORS = (1.0, 2.0)  # how many times as wide the inputs of a score may be: both directions of an RNN

NOT_FITTING = "its own layers do not fit one another. With weights of its own, {sizes}, it raises: {raised}"
OTHER_SIZES = (
    "The kata has one size for what the code tells apart. With {name}={size} beside {beside} the code raises: {raised}. "
    "If they may differ, a layer has the wrong size"
)

UNREAD = (
    "Its constructor takes {name}, and nothing reads it. If an input may be as wide as that, a layer has the wrong size"
)
OF_A_DIVISOR = (
    "It is built with {name}=1. With {name}={divisor} the code raises: {raised}. So a layer has the wrong size"
)


@dataclass(frozen=True, kw_only=True)
class _Way:
    """One choice of sizes: what the constructor gets, by symbol, and how wide the inputs of the call are."""

    args: tuple[int, ...]
    widths: dict[str, int]


def misfit(search: Search, reading: Reading) -> str:
    """What is said of code that raises for its own sizes, in every way that they may be meant; "" for any other."""
    if not search.contract.is_module or search.contract.builder:
        return ""
    raised: list[Raised] = []
    ways = list(_ways(search.contract, reading))
    for way in ways:
        found = _raised(search, reading, way)
        if found is None:
            return ""
        raised.append(found)
    if search.contract.has_score and _fits_numbers_of_its_own(search, reading, ways[0], raised):
        return ""
    return NOT_FITTING.format(sizes=_said(search.contract), raised=f"{raised[0].text}{raised[0].where}")


def _fits_numbers_of_its_own(search: Search, reading: Reading, way: _Way, raised: list[Raised]) -> bool:
    """Whether a query or keys as wide as a number in the code fit it: `nn.Linear(512, 512)` for what the decoder returns."""
    numbers = {int(found[1]) for one in raised if (found := _WANTED.search(one.text))}
    # A size that the code has a name for is no number of its own.
    numbers -= {*way.widths.values(), *map(int, LOOK.values())}
    for of_q, of_k in itertools.product((way.widths["q"], *numbers), (way.widths["k"], *numbers)):
        widths = {**way.widths, "q": of_q, "k": of_k, "v": of_k}
        if _raised(search, reading, replace(way, widths=widths)) is None:
            return True
    return False


def of_other_sizes(search: Search, reading: Reading, definition: Definition) -> list[str]:
    """A note for code that raises where a size of its own is another number, which the kata does not tell apart."""
    if reading.constants or search.contract.has_score:  # numbers that stay as they are; widths that one score compares
        return []
    notes = itertools.chain(
        _of_changed_sizes(search, reading, definition),
        _of_unread_widths(search, reading, definition),
        _of_divisors(search, reading, definition),
    )
    return list(itertools.islice(notes, 1))


def _of_changed_sizes(search: Search, reading: Reading, definition: Definition) -> Iterator[str]:
    """Where a size is changed alone. The inputs may be as wide as it, or as before: code does not say which size is theirs."""
    contract, way = search.contract, next(_ways(search.contract, reading))
    values = [value for _, value in reading.build]
    sizes_of_heads = ("D",) if contract.has_heads and not contract.has_own_sizes else ()
    # An x that is given twice makes the widths of both equal, and so does one that stands for a context.
    given = {name for name, value in reading.call if value != "None"}
    others = [one.name for one in definition.call if vocabulary.input_of(one.name) in ("context", "q", "k", "v")]
    is_given_once = not contract.is_self or [value for _, value in reading.call].count("x") == 1
    has_widths = (
        is_given_once
        and given.issuperset(others)
        and sum(value in _WIDTHS and value not in sizes_of_heads for value in values) > 1
    )
    for name, value in reading.build:
        if value in sizes_of_heads and "H" not in values:
            continue  # the number of heads follows from it
        if value in sizes_of_heads:
            other = _OTHER_SIZE
            widths = [] if "E" in values else [int(LOOK["H"]) * other]  # the width may be that of all heads together
        elif value in _WIDTHS and has_widths:
            other, widths = _OTHER_WIDTH, [_OTHER_WIDTH]
        else:
            continue
        if found := _raised_for_all(search, _with(reading, name, other), way, widths):
            beside = ", ".join(f"{each}={LOOK.get(size, size)}" for each, size in reading.build if each != name)
            yield OTHER_SIZES.format(name=name, size=other, beside=beside, raised=f"{found.text}{found.where}")


def _of_unread_widths(search: Search, reading: Reading, definition: Definition) -> Iterator[str]:
    """Where nothing reads a width that one of several inputs may have."""
    names = [name for name, value in reading.build if search.contract.is_cross and value in ("E", "C")]
    code = code_of(definition.text)
    yield from (UNREAD.format(name=name) for name in names if len(re.findall(rf"\b{re.escape(name)}\b", code)) == 1)


def _of_divisors(search: Search, reading: Reading, definition: Definition) -> Iterator[str]:
    """Where what divides a size and is 1 by default is another number: `dim // reduction`."""
    way = next(_ways(search.contract, reading))
    for name in _divisors(definition, reading):
        if found := _raised(search, replace(reading, build=(*reading.build, (name, str(_DIVISOR)))), way):
            yield OF_A_DIVISOR.format(name=name, divisor=_DIVISOR, raised=f"{found.text}{found.where}")


def _divisors(definition: Definition, reading: Reading) -> list[str]:
    """The parameters of the constructor that are 1 by default, and divide a size."""
    built = dict(reading.build)
    every = [one.name for one in definition.build if one.default == "1" and one.name not in built]
    return [name for name in every if re.search(rf"//\s*(?:self\.)?{re.escape(name)}\b", definition.text)]


def _raised_for_all(search: Search, reading: Reading, way: _Way, widths: Iterable[int]) -> Raised | None:
    """What is raised first, where it raises for all inputs that are as wide as before or have one of these widths."""
    given = [name for name in search.contract.inputs if name != "mask"]
    first = None
    for chosen in itertools.product(*((way.widths[name], *widths) for name in given)):
        found = _raised(search, reading, replace(way, widths=dict(zip(given, chosen, strict=True))))
        if found is None:
            return None
        first = first or found
    return first


def _with(reading: Reading, changed: str, size: int) -> Reading:
    return replace(
        reading, build=tuple((name, str(size) if name == changed else value) for name, value in reading.build)
    )


def _said(contract: Contract) -> str:
    return ", ".join(f"{symbol}={LOOK[symbol]}" for symbol, _ in contract.arguments if symbol in (*_WIDTHS, "H", "G"))


def _ways(contract: Contract, reading: Reading) -> Iterator[_Way]:
    """The sizes, all different where the code has a name for each; one without a name may be equal to any other."""
    told = {value for _, value in reading.sizes}
    told |= {"E"} if contract.has_heads and "E" in [symbol for symbol, _ in contract.arguments] else set()
    symbols = [symbol for symbol, default in contract.arguments if default is None]
    widths = [one for one in symbols if one in _WIDTHS]
    named = [one for one in widths if one in told] or widths[-1:]
    options = [(one,) if one in named else tuple(named) for one in widths]
    given = {value for _, value in reading.call}
    is_projected = contract.has_score and not reading.k.weight and {"k", "v"} <= given  # by the caller
    factors = list(itertools.product(_FACTORS, _FACTORS)) if contract.has_score else [(1.0, 1.0)]
    for chosen, (of_q, of_k) in itertools.product(itertools.product(*options), factors):
        sizes = {one: int(LOOK[other]) for one, other in zip(widths, chosen, strict=True)}
        sizes |= {one: int(LOOK[one]) for one in symbols if one not in sizes}
        width = sizes.get("E", sizes.get("I", sizes.get("D", 0)))
        context = sizes.get("C", width)
        inputs = {"x": width, "query": width, "key": width, "value": width, "context": context}
        inputs |= {"q": int(width * of_q), "k": int(context * of_k), "v": int(context * of_k)}
        if is_projected:
            inputs["k"] = sizes["D"]
        yield _Way(args=tuple(sizes[one] for one in symbols), widths=inputs)


def _raised(search: Search, reading: Reading, way: _Way) -> Raised | None:
    """The exception about shapes that such a call raises; None where it raises none, or another one."""
    contract, limits = search.contract, search.limits(reading)
    if search.attempt.adapt(adapter.of_own_weights(reading, contract)).status != wire.OK:
        return None
    handle = Handle(Limited(search.attempt, limits, attempt=True), search.returns)
    try:
        module = getattr(handle, contract.entry)(*way.args)
        module(*_inputs(contract, reading, way))
    except AttemptRaised as failed:
        # What the adapter itself raises, for an output layer that the code does not have, says nothing of the code.
        return failed.raised if failed.raised.frames and about_shapes(failed.raised.text) else None
    except (AttemptDied, PropertyFailed, RuntimeError, IndexError, ValueError):
        return None
    return None


def _inputs(contract: Contract, reading: Reading, way: _Way) -> list[Tensor | None]:
    """Inputs of the call, all of one length, with a mask that hides nothing where the code needs one."""
    given: list[Tensor | None] = []
    for name in contract.inputs:
        if name == "mask":
            shape = (2, _TOKENS) if contract.mask == "keys" else (_TOKENS, _TOKENS)
            given.append(torch.ones(shape, dtype=torch.bool) if reading.needs_mask or contract.has_score else None)
            continue
        given.append(torch.randn(2, _TOKENS, way.widths[name], generator=torch.Generator().manual_seed(0)))
    return given
