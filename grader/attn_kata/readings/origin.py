"""Whether a source was written for a kata's contract, or is to be read as it is."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata import stub
from attn_kata.catalog import Kata
from attn_kata.readings import contract
from attn_kata.readings.candidates import calls
from attn_kata.readings.contract import Contract
from attn_kata.readings.source import syntax, vocabulary
from attn_kata.readings.source.structure import Definition, Structure, attention_like


def is_by_contract(source: bytes, structure: Structure, entries: tuple[str, ...], known: Contract) -> bool:
    """Whether the source has a stub's header, or the contract's own names: then it is graded by them and never read."""
    if stub.header(source)[0] is not None or not structure.definitions:
        return True
    found = {name: structure.find(name) for name in entries}
    if any(one is None for one in found.values()):
        return False
    if known.rotation:  # a reading takes the rotation only, and would leave the kata's other function ungraded
        return True
    entry = found.get(known.entry)
    if entry is None or known.is_module != entry.is_class:
        return False
    if len(entries) > 1 and not known.is_module:  # so too where functions belong together
        return True
    if not known.is_module:
        # `scaled_dot_product_attention` is what many call theirs; with the contract's own parameters it is meant for it.
        return [one.name for one in entry.call] == list(known.inputs) and not entry.returned
    # Layers of another definition are not its own.
    return _takes(entry, known) and not missing_layers(structure.text(entry).encode(), known)


def _takes(entry: Definition, known: Contract) -> bool:
    """Whether a class can be built with the contract's arguments, as many as it needs at least."""
    if known.is_module and not known.has_heads and any(vocabulary.size_of(one.name) == "H" for one in entry.build):
        return False  # code with heads, in a class that is called as one without them
    needed = sum(default is None for _, default in known.arguments)
    required = sum(one.default is None and not one.name.startswith("*") for one in entry.build)
    takes_any = any(one.name.startswith("*") for one in entry.build)
    places = [symbol for symbol, _ in known.arguments]
    for one, symbol in zip(entry.build, places, strict=False):
        size = vocabulary.size_of(one.name)
        if size == "H" != symbol or (symbol == "p" and size not in ("p", "0.0") and one.name != "p"):
            return False  # the heads come elsewhere, or what comes there is no dropout
    if entry.returned and not known.returns:
        return False  # parts of a result, where the contract asks for one tensor
    if known.takes_qkv and not calls.fits(entry, known):
        return False
    if known.mask and any(one.default is None and vocabulary.input_of(one.name) == "mask" for one in entry.call):
        return False  # the contract's may be left out
    asked = [one.name for one in entry.call if one.default is None and vocabulary.input_of(one.name) != "mask"]
    if len(asked) > sum(vocabulary.input_of(name) != "mask" for name in known.inputs):
        return False
    return required <= len(known.arguments) and (takes_any or needed <= len(entry.build))


def built_otherwise(source: bytes, kata: Kata) -> str:
    """The name of the contract's class, where its constructor in the source calls its sizes otherwise; else "".

    The names of layers such as q_proj and o_proj are many people's, so code may have all of them and be nobody's attempt.
    """
    known = contract.of_kata(kata.folder)
    if known is None or not known.is_module or stub.header(source)[0] is not None:
        return ""
    theirs, ours = (syntax.of_source(each).find(known.entry) for each in (source, kata.solution.read_bytes()))
    if theirs is None or ours is None:
        return ""
    asked = {one.name for one in ours.build if one.default is None}
    return "" if asked <= {one.name for one in theirs.build} else theirs.name


def is_by_other_names(source: bytes, name: str, kata: Kata) -> bool:
    """Whether what has this name in the source would not be the kata's contract if it were called as that asks for."""
    known = contract.of_kata(kata.folder)
    if known is None:
        return False
    found = syntax.of_source(source)
    named = [_as_asked(one, known) if one.name == name else one for one in found.definitions]
    return not is_by_contract(source, replace(found, definitions=tuple(named)), kata.entries, known)


def _as_asked(one: Definition, known: Contract) -> Definition:
    """The definition with the names of the contract; a function may call its arguments otherwise, in this order."""
    if known.is_module or len(one.call) != len(known.inputs):
        return replace(one, name=known.entry)
    call = tuple(replace(each, name=name) for each, name in zip(one.call, known.inputs, strict=True))
    return replace(one, name=known.entry, call=call)


def has_layers_of(source: bytes, solution: bytes) -> bool:
    """Whether the names of all layers of a reference occur in the source; True for a reference without layers."""
    layers = re.findall(rb"self\.(\w+) = nn\.", solution)
    return all(re.search(rb"\b" + name + rb"\b", source) for name in layers)


def is_part_of_an_attention(structure: Structure, entries: tuple[str, ...]) -> bool:
    """Whether something that looks like an attention uses one of these functions, as a softmax from another file."""
    parts = [one for name in entries if (one := structure.find(name)) is not None]
    return any(whole.uses(part) for part in parts for whole in attention_like(structure) if whole.name not in entries)


def missing_layers(source: bytes, known: Contract) -> list[str]:
    """The contract's layers that the source does not name."""
    names = [one.name.rpartition(".")[2] for one in known.layers.values()]
    # As an attribute, or as a text where layers are made in a loop. A variable of this name is no layer.
    return [name for name in names if re.search(rf"self\.{name}\b|[\"']{name}[\"']".encode(), source) is None]
