"""Rotary positions by other names: what turns vectors, with the function or module that makes its angles.

Code that takes no positions numbers its tokens itself. Then each token is laid at its own place among zeros, as a sample of
its own. Code for pairs of two halves gets the columns in its order, so that its other mistakes keep their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from attn_kata.readings.candidates import positions
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure, attention_like, code_of

_NAMED = re.compile(r"rot(?!ocol)|rope|freq|cos_?sin|sinusoid|pos(?:ition)?(?:al)?_?(?:emb|enc)", re.IGNORECASE)
_TURNS_BY = re.compile(r"\bcos\b|\bsin\b|_cis|polar|complex|cos_|sin_|_cos|_sin", re.IGNORECASE)
# What parameters of rotations are called, as `vocabulary.plain` has it.
_WORDS = {
    "positions": "positions positionids position pos posids inputpos tokenpositions indices posidx inputpositions",
    "bases": "base theta ropetheta ropebase baseperiod thetabase rotarybase freqbase thetavalue "
    "basefreq basefrequency ropebasefreq ropefreqbase basetheta ropebasefrequency",
    "lengths": "end maxseqlen seqlen maxlen length n t ctxlen numpositions seqlength maxlength",
    "sizes": "dim headdim d dhead rotarydim ropedim dk dimhead dimension headsize embeddim dmodel hiddensize nelem",
    "tables": "freqs cossin cache ropecache emb poscis cis angles freq table sinusoidal rotarypos rope",
    "inputs": "x q k query key xq xk xqk qk t u tensor queries keys vec hiddenstates",
}
_POSITIONS, _BASES, _LENGTHS, _SIZES, _TABLES, _INPUTS = (set(words.split()) for words in _WORDS.values())
_OF_SAMPLE = {"places": "places_of_sample"}
_HEADS_FIRST = re.compile(
    r"\b(?:b|bs|bsz|batch\w*|n)\s*,\s*(?:h|nh|n_?heads?|num_\w*heads?|heads?)\s*,\s*(?:t|s|l|n|seq\w*|time|len\w*)\b",
    re.IGNORECASE,
)
_TIME_FIRST = re.compile(
    r"\b(?:b|bs|bsz|batch\w*)\s*,\s*(?:t|s|l|n|seq\w*|time|len\w*)\s*,\s*(?:h|nh|n_?heads?|num_\w*heads?|heads?)\b",
    re.IGNORECASE,
)


def find(structure: Structure) -> list[Definition]:
    """The functions and modules that turn vectors, those that use the others first."""
    attentions = {one.name for one in attention_like(structure)}
    named = [
        one
        for one in structure.own
        if one.name not in attentions
        and _NAMED.search(one.name)
        and not _adds(one, structure)
        and (_TURNS_BY.search(structure.text(one)) or (_tables(one) and not one.is_class))
    ]
    found = [one for one in named if _takes_vectors(one) and (one.is_class or not _is_maker(one))]
    tabled = [one for one in found if not one.is_class and _tables(one)]
    # A module beside a function that takes angles makes them, unless it calls the function itself.
    found = [one for one in found if not one.is_class or not tabled or any(one.uses(other) for other in tabled)]
    return [one for one in found if not any(other.uses(one) for other in found)]


def readings(definition: Definition, structure: Structure, kata: str) -> list[Reading]:
    """How a definition may be called: with each table that the source makes, and in each layout that words leave open."""
    build = _given(definition.build, {"D": _SIZES, "L": _LENGTHS, "base": _BASES}) if definition.is_class else ()
    if build is None:
        return []
    plain = Reading(kata=kata, entry=definition.name, is_class=definition.is_class, build=build)
    calls = [replace(plain, call=call) for call in _calls(definition)]
    if _tables(definition):
        made = list(_made(structure, definition)) or _of_the_caller(definition)
        calls = [replace(one, **table) for one in calls for table in made]
    layouts = [(4, "batch"), (4, "time"), (3, "batch")]
    said = layout(structure.text(definition))
    if said:
        layouts = [(4, said), (3, "batch")]
    return [
        replace(one, dims=dims, order=order, pairs=pairs, positions=shape)
        for one in calls
        for shape in _shapes(one)
        for pairs in ("neighbours", "halves")
        for dims, order in layouts
    ]


def by_sample(found: Iterable[Reading]) -> list[Reading]:
    """The same for code that takes the positions of one sample only."""
    return list(dict.fromkeys(replace(one, positions="(T,)") for one in found if takes_positions(one)))


def takes_positions(reading: Reading) -> bool:
    """Whether the call gets positions."""
    return any(value == "positions" for _, value in reading.call)


def numbers_tokens(reading: Reading) -> bool:
    """Whether the code numbers the tokens itself."""
    return not takes_positions(reading) and not reading.table


def base_is_fixed(reading: Reading) -> bool:
    """Whether nothing of the code takes the base."""
    return not any(
        value == "base" for _, value in (*reading.build, *reading.call, *reading.table_build, *reading.table_call)
    )


def length_is_fixed(reading: Reading) -> bool:
    """Whether a module may make its tables for a number of positions that cannot be set."""
    given = (*reading.build, *reading.table_build, *reading.table_call)
    return (reading.is_class or bool(reading.table_build)) and not any(
        value in ("L", "places", "places_of_sample", "positions", "like") for _, value in given
    )


def layout(text: str) -> str | None:
    """batch where words and names say (B, H, T, D), time for (B, T, H, D), None where they say nothing or both."""
    said = [_HEADS_FIRST.search(text) is not None, _TIME_FIRST.search(text) is not None]
    return {(True, False): "batch", (False, True): "time"}.get((said[0], said[1]))


def _shapes(reading: Reading) -> tuple[str, ...]:
    return ("any", "(B, T)") if takes_positions(reading) else ("(T,)",) if reading.table else ("any",)


def _adds(one: Definition, structure: Structure) -> bool:
    """Whether it adds positions to what it is given, and turns nothing: no product with a cosine, and no complex number."""
    code = code_of(structure.text(one))
    adds = re.search(r"\+=?\s*(?:self\.)?\w*(?:pe|pos|enc|emb|weight|table)\w*\b", code, re.IGNORECASE) is not None
    turned = r"\*\s*(?:\w+\.)*\w*(?:cos|sin)|(?:cos|sin)\w*(?:\([^()]*\))?(?:\[[^\]]*\])?\s*\*|complex|polar|cis|mul\(|einsum"
    return adds and re.search(turned, code) is None


def _takes_vectors(one: Definition) -> bool:
    return any(_is_input(parameter.name) for parameter in one.call[:2])


def _is_input(name: str) -> bool:
    """Whether a parameter takes what is turned: `query_or_key` too."""
    return (
        vocabulary.plain(name) in _INPUTS
        or re.match(r"x_|(?:q|k|query|key|queries|keys)(?:_|$)", name.lower()) is not None
    )


def _is_maker(one: Definition) -> bool:
    needed = [vocabulary.plain(parameter.name) for parameter in one.call if parameter.default is None]
    return bool(needed) and all(
        name in _SIZES | _LENGTHS | _BASES | _POSITIONS | {"device", "dtype"} for name in needed
    )


def _tables(one: Definition) -> list[str]:
    return [parameter.name for parameter in one.call if _table(parameter.name) is not None]


def _table(name: str) -> str | None:
    """Which part of a table a parameter takes: cos, sin or all of it."""
    given, plain = positions.given(name), vocabulary.plain(name)
    if given in ("cos", "sin"):
        return given
    part = re.match(r"(cos|sin)_|\w+_(cos|sin)$", name.lower())
    if given is None and part is not None and plain not in _TABLES:
        return part[1] or part[2]
    return "turns" if given in ("turns", "angles") or plain in _TABLES else None


def _calls(one: Definition) -> list[Pairs]:
    pairs: list[tuple[str, str]] = []
    optional: list[tuple[str, str]] = []
    for parameter in one.call:
        plain, table = vocabulary.plain(parameter.name), _table(parameter.name)
        if table is not None:
            pairs.append((parameter.name, table))
        elif plain in _POSITIONS:
            needed = parameter.default is None or not _tables(one)
            (pairs if needed else optional).append((parameter.name, "positions"))
        elif plain in _BASES:
            pairs.append((parameter.name, "base"))
        elif _is_input(parameter.name) and (not pairs or pairs[-1][1] == "q"):
            pairs.append((parameter.name, "k" if pairs else "q"))
        elif plain == "device" and parameter.default is None:
            pairs.append((parameter.name, "device"))
        elif parameter.default is None and not parameter.name.startswith("*"):
            what = "L" if plain in _LENGTHS else "D" if plain in _SIZES else None
            if what is None:
                return []
            pairs.append((parameter.name, what))
    return [tuple(pairs)]


def _given(parameters: Iterable[Parameter], known: dict[str, set[str]]) -> Pairs | None:
    """What each parameter gets; None where one that is needed is not known."""
    pairs = []
    for parameter in parameters:
        plain = vocabulary.plain(parameter.name)
        what = next((symbol for symbol, names in known.items() if plain in names), None)
        what = what or {"L": "L", "D": "D", "E": "D"}.get(vocabulary.size_of(parameter.name) or "")
        if what is None and plain in ("device", "dtype") and parameter.default is None:
            what = plain
        if what is not None:
            pairs.append((parameter.name, what))
        elif parameter.default is None and not parameter.name.startswith("*"):
            return None
    return tuple(pairs)


def _made(structure: Structure, turn: Definition) -> Iterator[dict[str, Any]]:
    """The functions and modules that make the tables of a turn."""
    for one in structure.definitions:
        if one.name == turn.name or not _NAMED.search(one.name) or not _TURNS_BY.search(one.text):
            continue
        known = {"D": _SIZES, "places": _POSITIONS, "L": _LENGTHS, "base": _BASES, "like": _INPUTS - {"t"}}
        if not one.is_class and _is_maker(one):
            call = _given(one.call, known)
            if call is not None:
                of_sample = tuple((name, _OF_SAMPLE.get(value, value)) for name, value in call)
                for way in dict.fromkeys((call, of_sample)):
                    yield {"table": one.name, "table_call": way}
        elif one.is_class:
            build, call = _given(one.build, {name: known[name] for name in ("D", "L", "base")}), _given(one.call, known)
            if build is not None and call is not None:
                of_sample = tuple((name, _OF_SAMPLE.get(value, value)) for name, value in call)
                for way in dict.fromkeys((of_sample, call)):
                    yield {"table": one.name, "table_build": build, "table_call": way}


# Tables that no code of the file makes, from angles (L, D / 2): the caller of the code has them.
TABLES_OF_CALLER = {
    "complex_table": "_torch.polar(_torch.ones_like(angles), angles)",
    "pairs_table": "_torch.stack((angles.cos(), angles.sin()), -1)",
    "cos_sin_tables": "(angles.cos(), angles.sin())",
    "cos_sin_tables_of_halves": "tuple(_torch.cat((part, part), -1) for part in (angles.cos(), angles.sin()))",
    "cos_sin_tables_of_neighbours": "tuple(part.repeat_interleave(2, -1) for part in (angles.cos(), angles.sin()))",
}
_OF_CALLER = {"table_call": (("D", "D"), ("L", "L"), ("base", "base"))}


def _of_the_caller(definition: Definition) -> list[dict[str, Any]]:
    """The tables that code can be meant to get whose file makes none: two for cos and sin, or one of any kind."""
    two = {"cos", "sin"} & {_table(name) for name in _tables(definition)}
    names = [name for name in TABLES_OF_CALLER if not two or name.startswith("cos_sin")]
    return [{"table": name + end, **_OF_CALLER} for end in ("", "_of_sample") for name in names]
