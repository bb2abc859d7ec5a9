"""A reading in words: the block that a report shows, and what departs from the contract."""

from __future__ import annotations

import re
import shlex
from typing import Any

from attn_kata.readings.asking.limits import Limits
from attn_kata.readings.candidates import positions, rotations
from attn_kata.readings.choice import Chosen
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import ROLES, Reading

OF_HEADS = (
    "With one head it is right. With several it raises: {raised}. Its split or its merge of the heads has a wrong size"
)
_OF_A_MODEL = re.compile(r"model|emb|hidden", re.IGNORECASE)
MOST_TIES = 2  # that are shown
# What a flag that is not shown stands for.
EMPTY = {"causal": "no", "residual": "no", "square": "no", "alike": "no", "order": "batch", "returns": "tensor"}
EMPTY |= {"shape": "any", "mask_type": "bool", "mask": "none", "needs_mask": "no", "hides_queries": "no", "o": "none"}

_MEANINGS = {
    "keep": "True (1) = may attend",
    "hide": "True (1) = hidden",
    "additive": "added to the scores",
    "lengths": "the length of each sample",
}
_ARRANGED = {
    "beside": "side by side {}",
    "blocks": "rows {}",
    "by_head": "rows head by head, each {}",
    "innermost": "rows {} in turn",
    "features": "rows feature by feature, each {}, and the heads inside",
}
_STORED = {
    "left": "applied to cat(heads' result, x)",
    "right": "applied to cat(x, heads' result)",
    "columns": "stored (in, out)",
    "conv": "a convolution of size 1",
    "heads": "stored (H, D, in)",
    "heads_columns": "stored (H, in, D)",
    "columns_heads": "stored (in, H, D)",
    "vector": "a vector",
    "shared": "one head's, used for every head",
    "wide": "each head wider than the kata's",
    "slices": "one for each head, of its own columns alone",
}


def _of_open_mask(chosen: Chosen) -> str:
    """That nothing says for sure what True in the mask means."""
    read_as, hint = _MEANINGS[chosen.reading.mask], chosen.hint
    other = "True = may attend" if chosen.reading.mask == "hide" else "True = hidden"
    to_settle = "To settle it: --mask keep or --mask hide"
    if hint is None or hint.meaning not in ("keep", "hide"):
        return (
            f"No name and no comment says what True in the mask means. It is read as: {read_as}. "
            f"If you meant {other}, this is mask.inverted. {to_settle}"
        )
    words = f" ('{hint.words}')" if hint.words else ""
    return (
        f"Words in the code{words} seem to say of a mask: {_MEANINGS[hint.meaning]}. The code computes the opposite, and it is "
        f"read as: {read_as}. If the words are about this mask, this is mask.inverted. {to_settle}"
    )


def described(chosen: Chosen, contract: Contract, *, by_contract: str | None) -> dict[str, Any]:
    """The report's `reading`. `by_contract` says what the contract alone would object to, where the entry has its name."""
    reading = chosen.reading
    notes = []
    if not chosen.settled:
        notes.append(_of_open_mask(chosen))
    if by_heads := chosen.raised_by_heads:
        notes.append(OF_HEADS.format(raised=f"{by_heads.text}{by_heads.where}"))
    usual = tuple(role for role in ("q", "k", "v") if role in reading.fused)
    if reading.fused != usual and reading.arrangement != "beside":
        cut, meant = " | ".join(reading.fused), " | ".join(usual)
        id = "project.swapped" if reading.fused == ("k", "q", "v") else "project.chunk_order"
        notes.append(
            f"The code cuts {reading.layer(reading.fused[0]).weight} as {cut}, and it is read so. "
            f"If you meant {meant}, this is {id}. To settle it: --read fused={','.join(usual)}"
        )
    notes += [
        f"The grader assumes that {one.words}. If you meant to follow the contract, this is {one.mistake}. "
        "To grade by the contract: --read conventions= (nothing after the =)"
        for one in chosen.limits.conventions
    ]
    if reading.pairs == "halves":
        notes.append(
            "The grader assumes that column i turns together with column i + D / 2, as in the Llama code of Hugging Face. "
            "If you meant neighbours, as the contract has it, this is rope.half_split. To settle it: --read pairs=neighbours"
        )
    if reading.float32:
        notes.append(
            "It computes in float32, whatever dtype it gets, and it is graded like that. The contract calls this a mistake: "
            "numerics.forced_float32, or numerics.default_dtype if the code makes its own tensors"
        )
    if reading.unrounded:
        notes.append("It rounds numbers, and it is graded without that: of rounded numbers every gradient is 0")
    if reading.full_precision:
        notes.append(
            "It casts to half precision, and it is graded without these casts: rounding would hide its mistakes"
        )
    if reading.one_sample:
        notes.append(
            "It takes a batch of one size only, and it is graded with one sample at a time. With another batch it raises. "
            "The contract asks for a batch of any size"
        )
    if reading.by_token:
        notes.append(
            "It keeps the keys of earlier tokens, and is called for each token in turn, so it hides later keys"
        )
    if reading.square and not contract.is_self:
        notes.append(
            "It takes only as many queries as keys, and it is graded like that. "
            "If it should take others too, this is context.query_length"
        )
    if _lacks_output(reading, contract):
        notes.append(f"It has no output layer. If it is meant to be all of {reading.kata}, this is output.missing")
    if not contract.has_score:
        taken = _taken_as_they_are(chosen.limits)
        notes += [
            f"It has no layer for {_listed(taken)}, and takes the {_listed([_TAKEN[role] for role in taken])} as they are. "
            f"If it is meant to be all of {reading.kata}, this is project.missing"
        ] * bool(taken)
    widths = [name for name, value in reading.build if value in ("D", "E") and _OF_A_MODEL.search(name)]
    if widths and not contract.is_module:
        notes.append(
            f"It is built with {widths[0]} as wide as q. If {widths[0]} is elsewhere the width of all heads together, "
            "a scale by it is scale.embed_dim"
        )
    if chosen.untried:
        notes.append(
            f"Its cache is not tried ({', '.join(chosen.untried)}). How it joins earlier keys, and which keys it hides then, "
            "is not graded"
        )
    notes += [*chosen.notes, *(_tie(reading, other) for other in chosen.ties[:MOST_TIES])]
    if by_contract:
        notes.append(by_contract)
    return {
        "kata": reading.kata,
        "entry": reading.entry,
        "lines": [{"what": what, "value": value} for what, value in _lines(reading, contract)],
        "flags": reading.flags(),
        "departures": departures(chosen, contract),
        "settled": chosen.settled,
        "notes": notes,
        "candidates": list(chosen.candidates),
        "ties": [_differing(other, reading) for other in chosen.ties[:MOST_TIES]],
    }


def _tie(reading: Reading, other: Reading) -> str:
    flags = " ".join(f"--read {shlex.quote(flag)}" for flag in _differing(other, reading))
    taken = ", ".join(_differing(reading, other))
    return f"Another reading explains the code with as many mistakes. Taken: {taken}. To take the other: {flags}"


def _differing(reading: Reading, other: Reading) -> list[str]:
    """The flags of a reading that the other does not have; with the empty value of one that only the other has."""
    mine, theirs = (dict(flag.split("=", 1) for flag in one.flags()) for one in (reading, other))
    found = [f"{key}={value}" for key, value in mine.items() if theirs.get(key) != value]
    return found + [f"{key}={EMPTY[key]}" for key in theirs if key not in mine and key in EMPTY]


def _arguments(reading: Reading, *, of_first: bool) -> str:
    """The arguments of the call, or of the call before it."""
    of_call = [(name, value) for name, value in reading.call if (name in reading.before[1:]) == of_first]
    return ", ".join(value if name == value else f"{name}={value}" for name, value in of_call)


def _lines(reading: Reading, contract: Contract) -> list[tuple[str, str]]:
    lines = []
    pairs = (*reading.build, *reading.globals, *((f"self.{name}", value) for name, value in reading.constants))
    built = ", ".join(f"{name} = {value}" for name, value in pairs)
    if reading.is_class:
        lines.append(("built with", built or "no argument"))
    lines += _layers(reading, contract)
    first = _arguments(reading, of_first=True)
    lines.append(
        (
            "call",
            (f"{reading.before[0]}({first}), then " if reading.before else "")
            + f"{'forward' if reading.is_class else reading.entry}({_arguments(reading, of_first=False)})"
            + (", time first" if reading.order == "time" and not contract.rotation else ""),
        )
    )
    if contract.rotation:
        return lines + _rotation(reading)
    if reading.builder:
        given = "T" if reading.lengths == 1 else "Tq, Tk"
        given = ", ".join(name for name, _ in reading.call) if contract.mask == "keys" else given
        lines.append(("its mask", f"{reading.builder}({given}): {_MEANINGS[reading.mask]}"))
        return lines[1:] if reading.entry == reading.builder else lines
    lines.append(("mask", _mask(reading)))
    what = "the weights of the keys" if reading.returns_weights else "the output"
    whole = "a tuple" if all(place.isdecimal() for place in reading.places) else "parts with names"
    returned = f"{whole}; its part {reading.places[0]} is {what}" if reading.places else "one tensor"
    returned = what if reading.returns_weights and not reading.places else returned
    returned += f", its part {reading.places[1]} the weights" if len(reading.places) > 1 else ""
    lines.append(("returns", returned + (", with the input added" if reading.residual else "")))
    return lines


def _rotation(reading: Reading) -> list[tuple[str, str]]:
    parts = [each for each in (reading.table_build, reading.table_call) if each]
    table = "".join("(" + ", ".join(f"{name}={value}" for name, value in each) + ")" for each in parts)
    heads = "(B, H, T, D)" if reading.order == "batch" else "(B, T, H, D)"
    lines = [("angles", f"{reading.table}{table}, at the positions")] if reading.table else []
    own = rotations.numbers_tokens(reading)
    lines += [("positions", "0, 1, 2, …, by itself: each token is laid at its place")] if own else []
    lines += [("vectors", "(B * H, T, D)" if reading.dims == 3 else heads)]
    lines += [("pairs", "columns i and i + D / 2" if reading.pairs == "halves" else "columns 2i and 2i + 1")]
    return [*lines, ("attention", "the kata's own, around the rotation")]


def _rotates(reading: Reading) -> list[str]:
    """What departs from the contract in a rotation."""
    found = ["the angles are made apart"] * bool(reading.table)
    found += ["numbers its tokens itself"] * rotations.numbers_tokens(reading)
    found += ["positions of one sample only"] * (reading.positions == "(T,)" and not reading.table)
    found += ["positions (B, T) only"] * (reading.positions == "(B, T)")
    found += ["time before heads"] * (reading.order == "time") + ["heads in the batch"] * (reading.dims == 3)
    found += ["pairs of two halves"] * (reading.pairs == "halves")
    found += ["a base that cannot be set"] * rotations.base_is_fixed(reading)
    return [*found, "only the rotation: the attention around it is the kata's"]


_TAKEN = {"q": "queries", "k": "keys", "v": "values"}


def _taken_as_they_are(limits: Limits) -> list[str]:
    """The roles of the layers that the code does not have."""
    layers = limits.contract.layers
    return [role for role in _TAKEN if role in layers and f"{layers[role].name}.weight" in limits.as_they_are]


def _listed(words: list[str]) -> str:
    """Words as a person lists them: "q, k and v"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _lacks_output(reading: Reading, contract: Contract) -> bool:
    """Whether it has the layers of an attention but the last; code that could not be built has none that is known."""
    known = any(reading.layer(role).weight for role in ROLES) or bool(reading.fused)
    return "o" in contract.layers and not reading.o.weight and known and not reading.no_output


def _layers(reading: Reading, contract: Contract) -> list[tuple[str, str]]:
    lines = []
    shown: set[str] = set()
    for role in ROLES:
        layer = reading.layer(role)
        if not layer.weight:
            if role in _taken_as_they_are(Limits(reading=reading, contract=contract)):
                lines.append((role, f"none: its {_TAKEN[role]} are taken as they are"))
            if role == "q" and reading.without_query:
                lines.append((role, "none: it takes no query, and the layer of the query counts as 0"))
            if role == "o" and _lacks_output(reading, contract):
                lines.append(("o", "none: the result of the heads is compared"))
            continue
        if layer.weight in shown:
            continue
        shown.add(layer.weight)
        shared = [each for each in reading.fused if reading.layer(each).weight == layer.weight]
        arranged = _ARRANGED[reading.arrangement].format(" | ".join(shared)) if shared else ""
        details = [part for part in (arranged, _STORED.get(layer.layout, "")) if part]
        lines.append((", ".join(shared) or role, ", ".join([layer.weight, *details])))
    return lines


def _mask(reading: Reading) -> str:
    own = "always causal" if reading.causal else ""
    if reading.mask == "none":
        return own or "none"
    shape = "any that broadcasts to the scores" if reading.shape == "any" else reading.shape
    said = _MEANINGS[reading.mask] if reading.mask == "lengths" else f"{_MEANINGS[reading.mask]}, {shape}"
    return ", and ".join(part for part in (said, own) if part)


def departures(chosen: Chosen, contract: Contract) -> list[str]:
    """What differs from the contract and is no mistake."""
    reading = chosen.reading
    found = ["names"] + ["computes in float32"] * reading.float32
    if contract.rotation:
        return found + _rotates(reading)
    found += ["takes a config"] * any("." in name for name, _ in reading.build)
    found += ["sizes at module level"] * bool(reading.globals)
    found += [f"self.{name} is a number" for name, _ in reading.constants]
    # One input hides which of the three goes to which layer.
    found += ["query, key and value are all x: --kata qkv_attention tries them apart"] * (
        contract.kata == "mha"
        and ([value for _, value in reading.call].count("x") == 3 or "qkv" in dict(reading.call).values())
    )
    found += ["fused"] * bool(reading.fused)
    found += ["one layer per head"] * any(".*" in reading.layer(role).weight for role in ("q", "k", "v"))
    found += ["heads wider than the kata's"] * (reading.q.layout == "wide")
    found += ["always causal"] * reading.causal
    place = contract.place_of_mask
    found += ["a mask of one length"] * (reading.lengths == 1)
    untried = chosen.mask_untried
    found += [f"its mask is not tried ({untried})" if untried else "takes no mask"] * (
        reading.mask == "none" and (place is not None or bool(untried))
    )
    beside = [name for name, value in reading.call if value == "no_tokens"]
    found += [f"no tokens in {name}, to which it attends too" for name in beside]
    found += ["takes a mask"] * (place is None and any(value == "mask" for _, value in reading.call))
    found += ["True hides"] * (reading.mask == "hide") + ["an additive mask"] * (reading.mask == "additive")
    found += [f"a mask {reading.shape}"] * (
        not reading.builder and reading.mask not in ("none", "lengths") and reading.shape != "any"
    )
    found += ["lengths in the place of a mask"] * (reading.mask == "lengths")
    found += ["no dropout of the weights"] * (contract.has_dropout and not reading.drops and not reading.own_rate)
    found += ["a dropout rate that nobody sets, and that is not graded"] * reading.own_rate
    found += ["no output layer"] * _lacks_output(reading, contract)
    found += ["no query"] * reading.without_query + ["no bias"] * bool(chosen.limits.zeroed and contract.bias)
    of_function = not contract.is_module and not contract.rotation and reading.dims != 3
    found += ["heads after the tokens, (B, T, H, D)" if of_function else "time first"] * (reading.order == "time")
    found += ["channels first, (B, E, T)"] * (reading.order == "channels")
    found += ["an image, (B, E, height, width)"] * (reading.order == "image")
    found += ["an image, (B, height, width, E)"] * (reading.order == "grid")
    found += ["several sequences for each sample, (B, P, T, E)"] * (reading.order == "groups")
    merged = not contract.is_module and any(value == "H" for _, value in reading.call)
    found += ["the heads side by side, (B, T, H * D)"] * merged
    found += ["returns the heads behind the tokens"] * reading.joins
    found += ["called with a stand-in for its module"] * any(value == "module" for _, value in reading.call)
    found += [f"{reading.dims} dimensions only"] * (bool(reading.dims) and not contract.is_module and not merged)
    found += ["one sequence at a time"] * (reading.dims == 2 and contract.is_module)
    found += ["only as many queries as keys"] * reading.square
    tables = positions.bias_tables(reading.unturned)
    found += ["its bias for each distance of two tokens is 0"] * bool(tables)
    found += ["its rotary positions are left out"] * (
        (reading.replaces_turns and tables != reading.unturned)
        or any(value in ("turns", "cos", "sin", "angles") for _, value in reading.call)
        or any(value == "None" and positions.given(name) == "angles" for name, value in reading.call)
    )
    found += [one.words for one in chosen.limits.conventions]
    found += ["its cache is empty"] * bool(reading.caches)
    found += [f"its cache is not tried ({', '.join(chosen.untried)})"] * bool(chosen.untried)
    found += [f"its own mask is not tried ({', '.join(chosen.switch_untried)})"] * bool(chosen.switch_untried)
    found += [f"not tried: {', '.join(chosen.masks_untried)}"] * bool(chosen.masks_untried)
    found += [f"its dropout is not tried ({chosen.dropout_untried})"] * bool(chosen.dropout_untried)
    found += [f"what it does with {', '.join(reading.filled)} is not graded"] * bool(reading.filled)
    found += [f"one query at a time, {reading.query}"] * (reading.query != "(B, T, E)")
    found += ["the keys are the values"] * reading.keys_are_values
    found += [f"no layer of the {_TAKEN[role]}" for role in _taken_as_they_are(chosen.limits)]
    found += ["returns the weights alone"] * reading.returns_weights
    wide = "only a context as wide as x" if contract.is_cross else "only values as wide as keys"
    wide = "only keys as wide as the query" if contract.has_score else wide
    wide = "one size for x, keys and values" if contract.has_own_sizes else wide
    found += [wide] * reading.alike
    found += ["one head of several that share the width of x"] * reading.is_one_of_heads
    found += [f"x and values {reading.narrow} times as wide as queries and keys"] * bool(reading.narrow)
    found += ["only one key-value head"] * reading.one_group
    found += ["only one head"] * reading.one_head
    sizes = "an even size" if reading.multiple == 2 else f"a size that is a multiple of {reading.multiple}"
    found += [f"only heads of {sizes}"] * (reading.multiple > 1)
    found += ["only sequences of the length that it is built for"] * reading.one_length
    found += ["what it puts on a GPU stays on the processor"] * reading.processor
    found += ["what it casts to half precision stays as it is"] * reading.full_precision
    found += ["a batch of one only"] * reading.one_sample
    found += ["one token at a time"] * reading.by_token
    found += ["rounds"] * reading.unrounded
    found += ["its lazy layers get their widths when they are made"] * bool(reading.lazy)
    found += ["its mask hides queries too"] * reading.hides_queries
    found += ["a dropout rate of its own"] * bool(reading.rates)
    if reading.places and not contract.returns:
        found.append("returns a tuple" if reading.places[0].isdecimal() else "returns parts with names")
    found += ["returns no weights of each head"] * chosen.limits.without_weights
    found += ["adds the input to the output"] * reading.residual
    found += [f"{', '.join(reading.gates)} set to change nothing"] * bool(reading.gates)
    found += [f"{', '.join(reading.bypassed)} left out"] * bool(reading.bypassed)
    found += [f"{', '.join(reading.off)} = False"] * bool(reading.off)
    return found
