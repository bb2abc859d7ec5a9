"""Builds code by other names, and finds its layers: every reading whose constructor is called without an error."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from attn_kata.diagnosis.lines import makes_layers_when_called
from attn_kata.properties.failures import Raised
from attn_kata.properties.handle import read_raised
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Argument, Build
from attn_kata.readings.adapters import adapter
from attn_kata.readings.adapters.own_code import BUILDER
from attn_kata.readings.candidates import blocks, building, gates, head_counts, layer_sizes, layers, positions
from attn_kata.readings.reading import ROLES, Layer, Reading, is_path, with_flags
from attn_kata.readings.searching import certain
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source.structure import Definition, Structure, code_of

OF_MASKS = ("mask", "mask_type", "shape")
_OF_LAYERS = ("q", "k", "v", "o", "fused", "arrangement", "head_width")
_OF_BUILD = (
    "build",
    "globals",
    "constants",
    "off",
    "bypassed",
    "processor",
    "full_precision",
    "lazy",
    "unrounded",
    "unturned",
    "gates",
    "multiple",
)
_SAYS_NO_SIZES = {"processor", "full_precision", "lazy", "unrounded", "unturned", "gates", "multiple"}


MOST_OF_A_REASON = 200  # characters of what an exception says
MOST_SHOWN = 6  # arguments of a constructor


def _shown(reading: Reading) -> str:
    """How the code was built; of many arguments the first."""
    pairs = [f"{name}={value}" for name, value in reading.build]
    return ", ".join([*pairs[:MOST_SHOWN], *(["…"] if len(pairs) > MOST_SHOWN else [])])


@dataclass(frozen=True, kw_only=True)
class Built:
    """Readings that build, with every place of the parameters that the names leave open.

    `sizes_fit`: whether the layers have the sizes of the contract's. `further`: parameters that are none of the contract's.
    """

    readings: list[Reading] = field(default_factory=list)
    sizes_fit: bool = True
    further: tuple[str, ...] = ()


def built(search: Search, definition: Definition) -> Built:
    """What builds. Without any, what was tried is noted."""
    if search.contract.is_module and not definition.is_class:
        search.tried.append(f"{definition.name} is a function, and {search.contract.kata} asks for a class")
        return Built()
    if definition.misspelt and search.contract.is_module:
        meant = "__init__" if "init" in definition.misspelt else "forward"
        search.tried.append(f"{definition.name} has no {meant}, and nothing calls its '{definition.misspelt}'")
        return Built()
    if not_modules := _not_modules(search, definition):
        search.tried.append(f"{definition.name} has no submodule '{not_modules[0]}' that could be left out")
        return Built()
    reasons: list[str] = []
    raising: list[Reading] = []  # by the code's own mistake
    fallback: list[Reading] = []  # it builds, and its layers have other sizes
    wide: Built | None = None  # with heads as wide as x, or with layers of one head for all, where nothing else fits
    of_build = {key: value for key, value in search.given.items() if key in _OF_BUILD}
    is_said = bool(of_build.keys() - _SAYS_NO_SIZES)
    rotations = positions.makers(definition, search.structure)
    text = search.structure.text(definition)
    waiting = list(building.buildings(definition, search.structure, search.contract))
    if search.given.get("one_sample"):
        waiting = [building.of_one_sample(each, definition, search.structure) for each in waiting]
    waiting = [with_flags(each, of_build) for each in waiting]
    waiting = list(dict.fromkeys(waiting))
    for one in waiting:
        if not search.contract.is_module:
            return Built(
                readings=[with_flags(one, {key: value for key, value in search.given.items() if key not in OF_MASKS})]
            )
        shapes = _shapes(search, one)
        if isinstance(shapes, Raised):
            raises = f"raises {shapes.types[0]}: {shapes.text[:MOST_OF_A_REASON]}{shapes.where}"
            reasons.append(f"{one.entry}({_shown(one)}) {raises}")
            multiple = multiple_in(shapes, search.structure) if search.contract.has_heads else 1
            if multiple > one.multiple and "multiple" not in search.given:
                waiting.append(replace(one, multiple=multiple))
            if "unturned" not in search.given and not set(rotations) <= set(one.unturned):
                waiting.append(replace(one, unturned=tuple(dict.fromkeys((*one.unturned, *rotations)))))
            own = certain.is_own_mistake(shapes, search.structure.text(definition), search.structure)
            if own and not _asks_what_is_unknown(one, search.structure.line(shapes.line or 0)):
                raising.append(one)
            continue
        if isinstance(shapes, str):
            reasons.append(shapes)
            continue
        if not shapes and makes_layers_when_called(search.structure.text(definition).encode()):
            return Built(readings=[one])  # a mistake however it is read: no layer that it could be compared by
        search.given.update(_whole_layers(search, shapes))
        strange = _strange(search, shapes)
        if strange:
            reasons.append(f"it has no parameter '{strange}'; it has {_listed(shapes)}")
            continue
        there = tuple(name for name in one.gates if any(gates.is_one(path, (name,)) for path in shapes))
        one = replace(one, gates=there)  # a flag may have left one out
        places = blocks.with_layers if search.contract.is_block else layers.with_layers
        readings = places(one, shapes, definition, search.structure, search.contract)
        if isinstance(readings, str):
            reasons.append(readings)
            continue
        of_layers = {key: value for key, value in search.given.items() if key in _OF_LAYERS}
        if of_layers and not readings:
            readings = [one]
        readings = list(dict.fromkeys(with_flags(each, of_layers) for each in readings))
        misfits = [layer_sizes.misfit(each, shapes, search.contract) for each in readings]
        if misfits and all(misfits):
            reasons.append(misfits[0])
            continue
        readings = [each for each, misfit in zip(readings, misfits, strict=True) if not misfit]
        fits = readings and (is_said or layer_sizes.plausible(readings[0], shapes, search.contract))
        if fits and readings[0].q.layout in ("wide", "shared") and not is_said:
            wide = wide or Built(readings=readings, further=_further(readings[0], shapes, definition))
            continue
        if fits and readings[0].q.layout == "slices" and not is_said and not head_counts.takes_parts(text):
            fallback = fallback or readings  # each head is given the whole of x: its width may be that of x
            continue
        if fits:
            return Built(readings=readings, further=_further(readings[0], shapes, definition))
        if readings:
            fallback = fallback or readings
            continue
        reasons.append(f"its parameters do not say which are q, k and v ({_listed(shapes)})")
    if wide is not None:
        return wide
    if fallback:
        return Built(readings=fallback, sizes_fit=False)
    if raising and len(raising) == len(reasons):
        return Built(readings=raising[:1])
    search.tried.append(f"{definition.name}: {reasons[0] if reasons else _no_sizes(definition, search)}")
    return Built()


_EVEN = re.compile(r"(?i)\beven\b|\btwo\b")
_MULTIPLE = re.compile(r"(?i)(?:divisible by|multiple of) (\d{1,3})\b|%\s*(\d{1,3})\b")


def multiple_in(raised: Raised, structure: Structure) -> int:
    """What a size must be a multiple of, as a refusal of the code's own says or its line asks: 8 of `size % 8 == 0`; else 1."""
    if raised.types[0] not in ("AssertionError", "ValueError") or not raised.frames:
        return 1
    number = raised.frames[-1][0]
    for text in (raised.text, structure.line(number), structure.line(number - 1)):  # if size % 8: raise …
        found = _MULTIPLE.search(text)
        if found is not None:
            return int(found[1] or found[2])
        if _EVEN.search(text):
            return 2
    return 1


def _no_sizes(definition: Definition, search: Search) -> str:
    """Why nothing was built: which sizes its constructor does not take."""
    taken = ", ".join(one.name for one in definition.build[:MOST_SHOWN])
    if search.contract.has_groups and taken:
        return f"no argument of it is a number of key-value heads ({taken}). If it has as many as heads: --kata mha"
    return "it takes no sizes that are known"


def _asks_what_is_unknown(reading: Reading, line: str) -> bool:
    """Whether a line of the code asks its config for something that is not known, so that it gets None."""
    unknown = [name.rpartition(".")[2] for name, value in reading.build if value == "None" and "." in name]
    return any(re.search(rf"\b{re.escape(name)}\b", line) for name in unknown)


def _further(reading: Reading, shapes: layers.Shapes, definition: Definition) -> tuple[str, ...]:
    """The parameters that are no part of a layer of the contract, and that more than the constructor names."""
    places = [reading.layer(role) for role in ROLES]
    placed = {path for layer in places for path in (layer.weight, layer.bias) if path}
    code = code_of(definition.text)
    return tuple(
        path
        for path in shapes
        if re.sub(r"\.\d+(?=\.|$)", ".*", path) not in placed
        and path not in placed
        and not positions.is_off(path, reading.unturned)
        and not gates.is_one(path, reading.gates)
        and len(re.findall(rf"self\.{re.escape(path.partition('.')[0])}\b", code)) > 1
    )


def _whole_layers(search: Search, shapes: layers.Shapes) -> dict[str, object]:
    """The layers that the user has named without a parameter, `q=W_q`: each with its weight and its bias."""
    found: dict[str, object] = {}
    for role in ROLES:
        layer = search.given.get(role)
        if isinstance(layer, Layer) and layers.of_first_head(layer.weight) not in shapes and not layer.bias:
            weight, bias = f"{layer.weight}.weight", f"{layer.weight}.bias"
            has_bias = layers.of_first_head(bias) in shapes
            whole = replace(layer, weight=weight, bias=bias if has_bias else "")
            found |= {role: whole} if layers.of_first_head(weight) in shapes else {}
    return found


def _not_modules(search: Search, definition: Definition) -> list[str]:
    """The names that the user wants to leave out, and that are no submodules: a parameter, or nothing at all."""
    names: tuple[str, ...] = search.given.get("bypassed", ())  # type: ignore[assignment]
    made = {name: maker for each in search.structure.reach(definition) for name, maker in each.layers.items()}
    return [name for name in names if made.get(name.partition(".")[0], "Parameter").endswith("Parameter")]


def _strange(search: Search, shapes: layers.Shapes) -> str | None:
    """The first weight or gate that the user has named and the code does not have: it would never be set, and be blamed.

    A bias that it does not have is another matter: the adapter gives it one.
    """
    said = (search.given[role] for role in ROLES if role in search.given)
    paths = [one.weight for one in said if isinstance(one, Layer) and one.weight]
    strange = next((path for path in paths if layers.of_first_head(path) not in shapes), None)
    named: tuple[str, ...] = search.given.get("gates", ())  # type: ignore[assignment]
    return strange or next((one for one in named if not any(gates.is_one(path, (one,)) for path in shapes)), None)


def _listed(shapes: layers.Shapes) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in list(shapes.items())[:12]) or "none"


def _shapes(search: Search, reading: Reading) -> layers.Shapes | Raised | str:
    """The shapes of the code's own parameters, or what its constructor raises, or why else it cannot be built."""
    reply = search.attempt.adapt(adapter.builder(reading))
    if reply.status == wire.OK:
        look = building.look(reading)
        args: tuple[Argument, ...] = tuple(
            ("value", look[name]) for name in ("E", "H", "D", "C", "p", "I", "V", "L", "G", "M")
        )
        reply = search.attempt.ask(Build(name=BUILDER, module=0, seed=0, args=args))
    if reply.status == wire.RAISED:
        return read_raised(reply.texts)
    if reply.status != wire.OK:
        return (reply.texts[0] if reply.texts else "it cannot be built")[:300]
    told = zip(reply.texts, reply.tensors, strict=True)
    shapes = {name: part.shape for name, part in told if is_path(name)}  # what a stranger says goes into an adapter
    return {name: building.in_usual_sizes(shape, reading) for name, shape in shapes.items()}
