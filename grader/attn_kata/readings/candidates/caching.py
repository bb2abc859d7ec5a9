"""How code that keeps the keys of earlier tokens is called for one token after the other, told by its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from attn_kata.readings.candidates import arguments, positions
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure, code_of

HANDED_BACK = "cache"  # what a parameter of the call gets: what the call before has returned for it
HANDS_BACK_NOTHING = "its call hands back no keys that the next call could take"  # what the adapter raises
_HOLDS = re.compile(r"cache|past|present", re.IGNORECASE)
_SWITCHES = re.compile(
    r"^(?:use|return|with|enable|is)_?\w*(?:cache|past|present|infer\w*)|^(?:inference|infer)$", re.I
)
_SAYS_ROTATION = re.compile(r"rope|rot|freq|cos|sin", re.IGNORECASE)
# A number that says where the new tokens stand, and that must be passed: cache_len, position_offset; of no layer.
_PLACE = re.compile(r"(?:^|_)(?:offset|start|pos|positions?)(?:$|_)|(?:past|cache|cur|seq)_?len", re.IGNORECASE)
# Attributes that are empty until the first call: self.cache_k = None.
_EMPTY = re.compile(r"self\.(\w*(?:cache|past|memory|mem_)\w*)\s*(?::[^=\n]*)?=\s*None\b", re.IGNORECASE)


def handed_back(definition: Definition, given: Mapping[str, str]) -> str:
    """The parameter of the call that takes what the call before has returned; "" without one, or with several.

    `given`: what each parameter gets in a call without a cache.
    """
    found = [
        one.name
        for one in definition.call
        if _HOLDS.search(one.name)
        and not _is_switch(one)
        and not _SAYS_ROTATION.search(one.name)
        and "None" in (one.default, given.get(one.name))
        and positions.given(one.name) != "0"
        and len(re.findall(rf"\b{re.escape(one.name)}\b", code_of(definition.reached))) > 1  # it is read
    ]
    return found[0] if len(found) == 1 else ""


def made_first(parameter: str, definition: Definition, structure: Structure) -> tuple[str, Pairs] | None:
    """What the first call gets for the cache, with the sizes that it is made with: a class of the source, or "dict" for an
    empty one. ("", ()) for None; None where an object of another kind is wanted.
    """
    own = re.escape(parameter)
    code = code_of(definition.reached)
    if re.search(
        rf"[\"'][\w.]+[\"']\s+(?:not\s+)?in\s+{own}\b|\b{own}\[\s*[\"']\w+[\"']\s*\](?:\s*,[^\n=]*)?\s*=(?!=)", code
    ):
        return "dict", ()
    said = next((one.annotation for one in definition.call if one.name == parameter), "")
    classes = {one.name: one for one in structure.definitions if one.is_class and one is not definition}
    named = [name for name in re.findall(r"\w+", said) if name in classes]
    named = named or [name for name in classes if "cache" in name.lower()] * (
        re.search(rf"\b{own}\.\w", code) is not None
    )
    if not named:
        return None if re.search(rf"\b{own}\.\w+\(", code) else ("", ())
    made = classes[named[0]]
    if len(set(named)) > 1 or re.search(r"NamedTuple|namedtuple", made.text):
        return ("", ()) if len(set(named)) == 1 else None
    sizes = [(one.name, vocabulary.size_in(one.name, made.text)) for one in made.build if one.default is None]
    if not all(symbol in _SIZES_OF_CACHES for _, symbol in sizes):
        return None
    return made.name, tuple((name, symbol or "") for name, symbol in sizes)


_SIZES_OF_CACHES = ("16", "L", "H", "G", "D", "E")


def kept(definition: Definition) -> tuple[str, ...]:
    """The attributes in which it keeps keys and values itself."""
    names = positions.stored(definition) + _EMPTY.findall(definition.text)
    return tuple(name for name in dict.fromkeys(names) if not _SAYS_ROTATION.search(name))


def call_of(definition: Definition, call: Pairs) -> Pairs | None:
    """The call for one token after the other; None where it does not keep keys in a way that is known."""
    given = dict(call)
    parameter = handed_back(definition, given)
    switches = [one.name for one in definition.call if _is_switch(one, given.get(one.name))]
    places = [one.name for one in definition.call if positions.given(one.name) == "0" or _is_number_of_earlier(one)]
    if not parameter and not (kept(definition) and (places or switches)):
        return None
    told = {*given, *switches, *places, parameter}
    if any(_PLACE.search(one.name) for one in definition.call if one.name not in told):
        return None  # where a token stands may say what it sees, and how that is passed is not known
    changed = dict.fromkeys(switches, "True") | dict.fromkeys(places, "0")
    changed |= {parameter: HANDED_BACK} if parameter else {}
    masks = [name for name, value in call if value == "mask"]
    changed |= dict.fromkeys(masks, "None")  # no token sees a later one: it has not come yet
    before = tuple((name, value) for name, value in call if name not in changed)
    return (*before, *changed.items())


def through(
    reading: Reading, contract: Contract, definition: Definition, structure: Structure, chunks: int = 0
) -> Reading | None:
    """The reading of code with its cache, for one token after the other, from that of whole sequences.

    `chunks`: how many tokens a call gets after that of the first token, in the place of one.

    None where the code has no cache, or one that is called in a way that is not known.
    """
    is_module = definition.is_class and contract.is_module and contract.is_self and not contract.is_block
    of_one_kind = reading.by_token or reading.one_sample or reading.one_length
    if not is_module or of_one_kind or reading.needs_mask or reading.order != "batch" or reading.dims or reading.before:
        return None
    call = call_of(definition, reading.call)
    if call is None:
        return None
    parameter = next((name for name, value in call if value == HANDED_BACK), "")
    first = made_first(parameter, definition, structure) if parameter else ("", ())
    if first is None:
        return None
    return replace(
        reading,
        by_token=True,
        call=call,
        build=build_of(definition, reading.build),
        chunks=chunks,
        cache=first[0],
        cache_build=first[1],
        caches=kept(definition),
        causal=not contract.causal,
        mask="none",
        mask_type="bool",
        shape="any",
    )


def _is_number_of_earlier(one: Parameter) -> bool:
    """Whether a parameter is how many tokens came before, as position_offset: int = 0."""
    return _PLACE.search(one.name) is not None and (
        one.default == "0" or re.fullmatch(r"(?:Optional\[)?int\]?", one.annotation) is not None
    )


def is_handed_back(reading: Reading) -> bool:
    """Whether a call gets what the call before has returned."""
    return any(value == HANDED_BACK for _, value in reading.call)


def build_of(definition: Definition, build: Pairs) -> Pairs:
    """The constructor's arguments, with its switches of a cache on, as the first of its layers."""
    return tuple(
        (
            name,
            "True"
            if value == "False" and _SWITCHES.search(last)
            else "0"
            if arguments.PLACE_OF_LAYER.fullmatch(last)
            else value,
        )
        for name, value in build
        for last in [name.rpartition(".")[2]]
    )


def _is_switch(one: Parameter, given: str | None = None) -> bool:
    says_bool = "bool" in one.annotation or {one.default, given} & {"True", "False"} != set()
    return says_bool and (_SWITCHES.search(one.name) is not None or vocabulary.plain(one.name) == "usecache")
