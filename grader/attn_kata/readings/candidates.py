"""The readings that are possible for a definition: how it is built, where its parameters are, how it is called.

All of it comes from names, syntax and shapes. What they leave open is a list, the likeliest first; `search` decides.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata.readings import vocabulary
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import ARRANGEMENTS, Layer, Pairs, Reading
from attn_kata.readings.structure import Definition, Parameter, Structure

MOST = 24  # candidates for one definition
# The sizes for looking at parameters: all different, so that a shape says which is which.
LOOK = {"E": 30, "H": 5, "D": 6, "C": 16, "p": 0.0, "I": 22, "V": 26, "L": 256}

Shapes = dict[str, tuple[int, ...]]

_RESIDUAL = re.compile(r"res|proj|out|hidden|ff|path|final", re.IGNORECASE)


# ---------------------------------------------------------------------------------------------------- which definition


def fits(definition: Definition, contract: Contract) -> bool:
    """Whether a definition can be an attempt at the kata, by its parameters and calls."""
    inputs = call_inputs(definition)
    if contract.is_module:
        return definition.is_class and bool(definition.layers or definition.build) and bool(inputs)
    if definition.is_class and any(
        made in ("Linear", "Parameter", "Conv1d", "Conv1D") for made in definition.layers.values()
    ):
        return False
    return len([what for what in inputs.values() if what != "mask"]) >= 3


def call_inputs(definition: Definition) -> dict[str, str]:
    """What each required or known parameter of the call is: x, q, k, v, context, mask."""
    found: dict[str, str] = {}
    for parameter in definition.call:
        what = vocabulary.input_of(parameter.name)
        if what is None and parameter.default is None and not found:
            what = "x"
        if what is not None and not (what == "mask" and "mask" in found.values()):
            found[parameter.name] = what
    return found


# ---------------------------------------------------------------------------------------------------------- building


def buildings(definition: Definition, structure: Structure, contract: Contract) -> Iterator[Reading]:
    """Readings that say how the definition is built, and nothing else yet."""
    empty = Reading(kata=contract.kata, entry=definition.name, is_class=definition.is_class)
    reach = structure.reach(definition)
    read = frozenset().union(*(one.reads for one in reach))
    sizes = [(name, vocabulary.size_of(name)) for name in sorted(structure.globals & read)]
    globals_ = tuple((name, symbol) for name, symbol in sizes if symbol in ("E", "H", "D", "p", "L"))
    common = replace(empty, globals=globals_, off=_off(reach), bypassed=_bypassed(definition, structure))
    common = replace(common, rates=_rates(definition, structure, common) if contract.has_dropout else ())
    if not definition.is_class:
        yield common
        return
    known: list[tuple[str, str]] = []
    unknown: list[str] = []
    for parameter in definition.build:
        if parameter.name == definition.config:
            known += [(f"{parameter.name}.{name}", _config_value(name, contract)) for name in definition.config_names]
            continue
        if parameter.name.startswith("*"):
            continue
        symbol = _symbol(parameter, definition, contract)
        if symbol is not None:
            known.append((parameter.name, symbol))
        elif parameter.default is None:
            unknown.append(parameter.name)
    symbols = [value for _, value in known]
    missing = [symbol for symbol in ("E", "H") if symbol not in symbols and (symbol == "E" or contract.has_heads)]
    guesses: list[tuple[str, ...]] = []
    if unknown:
        pool = [*missing, "E", "H", "D", "None"]
        guesses = list(dict.fromkeys(itertools.permutations(pool, len(unknown))))[:6] if len(unknown) <= 3 else []
        guesses.append(("None",) * len(unknown))
    for guess in guesses or [()]:
        yield replace(common, build=_in_order(definition, [*known, *zip(unknown, guess, strict=True)]))


def _in_order(definition: Definition, pairs: list[tuple[str, str]]) -> Pairs:
    order = [parameter.name for parameter in definition.build]
    return tuple(sorted(pairs, key=lambda pair: order.index(pair[0].partition(".")[0])))


def _symbol(parameter: Parameter, definition: Definition, contract: Contract) -> str | None:
    """What to give a parameter of the constructor, or None to leave it out or to guess."""
    symbol = vocabulary.size_of(parameter.name)
    if symbol is None:
        if parameter.default is not None:
            return None
        return {"bool": "False", "float": "0.0", "str": "None"}.get(parameter.annotation)
    return _for_contract(symbol, parameter.name, [one.name for one in definition.build], contract, parameter.default)


def _for_contract(symbol: str, name: str, names: list[str], contract: Contract, default: str | None) -> str | None:
    symbols = [each for each, _ in contract.arguments]
    if symbol in ("True", "False", "None") and default is not None:
        if symbol == "True":  # a bias or not: as the contract has it
            return "True" if contract.bias and default != "True" else None
        return None if default == symbol or symbol == "None" else symbol
    if symbol == "None":
        return "None"
    if symbol in ("True", "False", "0.0", "L", "sqrt(D)"):
        return symbol
    if symbol == "p":
        return "p" if contract.has_dropout else "0.0"
    if symbol == "H" and not contract.has_heads:
        return "1"
    if symbol == "C" and not contract.is_cross:
        return "I" if "I" in symbols else "E"
    if "I" not in symbols:
        if symbol == "E" and contract.is_cross and vocabulary.plain(name) in ("kdim", "vdim", "keysize", "valuesize"):
            return "C"
        return symbol
    # A contract with the sizes of one head: input I, keys D, values V.
    plain = vocabulary.plain(name)
    if plain in ("dv", "dvalue", "valuedim", "dimv", "valuesize"):
        return "V" if "V" in symbols else "D"
    others = [each for each in names if each != name and vocabulary.size_of(each) in ("E", "D")]
    if symbol == "E" and others and "out" not in name.lower():
        return "I"
    return "D" if symbol == "E" else symbol


def _config_value(name: str, contract: Contract) -> str:
    symbol = vocabulary.size_of(name)
    if symbol is None:
        return "0.02" if re.search(r"init|std|range|eps|scale", name) else "None"
    return _for_contract(symbol, name, [], contract, None) or symbol


def _off(reach: list[Definition]) -> tuple[str, ...]:
    """Attributes that choose a ready-made attention where there is one."""
    return ("flash",) if any(re.search(r"self\.flash\s*=", one.text) for one in reach) else ()


def _bypassed(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """Norms, and dropouts of the result: no part of the attention."""
    parts = structure.parts(definition)
    dropouts = [(path, owner) for path, made, owner in parts if made == "Dropout"]
    of_weights = [path for path, owner in dropouts if "softmax" in owner.text and not _of_result(path.rpartition(".")[2])]
    found = [path for path, made, _ in parts if made in vocabulary.NORMS or made.endswith("Norm")]
    for path, owner in dropouts:
        *_, before, last = ["", *path.split(".")]
        of_result = before.startswith("to_") if last.isdecimal() else _of_result(last)
        if of_result or (of_weights and "softmax" not in owner.text and owner is not definition) or (
            of_weights and owner is definition and path not in of_weights and "softmax" not in owner.text
        ):
            found.append(path)
    return tuple(dict.fromkeys(found))


def _rates(definition: Definition, structure: Structure, reading: Reading) -> tuple[str, ...]:
    """Dropouts whose rate the constructor cannot choose: a number, or a default of an inner class that nobody sets."""
    found = []
    for path, made, owner in structure.parts(definition):
        if made != "Dropout" or path in reading.bypassed:
            continue
        name = path.rpartition(".")[2]
        constant = re.search(rf"self\.{re.escape(name)}\s*=\s*(?:\w+\.)*Dropout\(\s*(?:p\s*=\s*)?[\d.]+\s*\)", owner.text)
        made_by = re.search(rf"\b{owner.name}\(([^()]*(?:\([^()]*\)[^()]*)*)\)", definition.text)
        defaults = all(one.default is not None for one in owner.build if vocabulary.size_of(one.name) == "p")
        unset = owner is not definition and made_by is not None and "drop" not in made_by[1] and defaults
        if constant or (unset and any(vocabulary.size_of(one.name) == "p" for one in owner.build)):
            found.append(path)
    return tuple(found)


def _of_result(name: str) -> bool:
    """Whether a dropout's name says that it acts on the result: `resid_dropout`, `proj_drop`."""
    rest = re.sub(r"drop(?:out)?", "", name.lower())
    return _RESIDUAL.search(rest) is not None and "att" not in rest


# --------------------------------------------------------------------------------------------------------- parameters


def with_layers(
    reading: Reading, shapes: Shapes, definition: Definition, structure: Structure, contract: Contract
) -> list[Reading]:
    """The reading with the places of q, k, v and o, once for each way in which names and shapes can be understood."""
    weights = {path: shape for path, shape in shapes.items() if len(shape) > 1 and not _in_bypassed(path, reading)}
    if not weights:
        return []
    groups = _groups(weights, LOOK["H"])
    wanted = [
        role for role in ("q", "k", "v", "o") if role in contract.layers or ("qkv" in contract.layers and role != "o")
    ]
    made = {one: maker for part in structure.reach(definition) for one, maker in part.layers.items()}
    fused: dict[str, tuple[str, ...]] = {}
    named: dict[str, str] = {}
    rest: list[str] = []
    for path, shape in groups.items():
        kind = _fused(path, shape, groups)
        if kind:
            fused[path] = kind
            continue
        role = vocabulary.role_of(_bare(path))
        if role in wanted and role not in named:
            named[role] = path
        elif role is None or role in named:
            rest.append(path)
    for kind in fused.values():
        for role in kind:
            named.pop(role, None)
    covered = {role for kind in fused.values() for role in kind} | set(named)
    order = _creation_order(rest, definition, structure)
    open_roles = [role for role in wanted if role not in covered]
    assignments: list[dict[str, str]] = []
    if "o" in open_roles and len(order) == 1 and len(open_roles) == 1:
        assignments.append({"o": order[0]})
    elif open_roles and len(order) >= len([role for role in open_roles if role != "o"]):
        qkv = [role for role in open_roles if role != "o"]
        # A list is in the order q, k, v: another order that explains the code would hide that two are swapped.
        in_list = all(re.search(r"\.\d+(?:\.|$)", path) for path in order)
        for chosen in [tuple(qkv)] if in_list else itertools.permutations(qkv):
            roles = [*chosen, *(["o"] if "o" in open_roles and len(order) > len(qkv) else [])]
            assignments.append(dict(zip(roles, order, strict=False)))
    readings = []
    for more in assignments or [{}]:
        places = {**named, **more}
        if any(role not in places and role not in covered for role in wanted if role != "o"):
            continue
        layers = {role: _layer(path, shapes, made, role) for role, path in places.items()}
        for path, kind in fused.items():
            layers.update({role: _layer(path, shapes, made, "qkv", len(kind)) for role in kind if role in wanted})
        one = replace(reading, **layers)
        orders = _orders(fused, definition, structure)
        for arrangement in ARRANGEMENTS if fused and contract.has_heads else ("blocks",):
            for roles in orders:
                for raw in _raw(one, contract):
                    readings.append(replace(raw, fused=roles, arrangement=arrangement))
    return readings


def _in_bypassed(path: str, reading: Reading) -> bool:
    starred = re.sub(r"\.\d+(?=\.)", ".*", path)
    return any(one.startswith(f"{name}.") for name in reading.bypassed for one in (path, starred))


def _groups(weights: Shapes, heads: int) -> Shapes:
    """The weights by path; those of one layer per head as one, with `*` for the head."""
    starred: dict[str, list[str]] = {}
    for path in weights:
        parts = path.split(".")
        for place, part in enumerate(parts):
            if part.isdecimal():
                starred.setdefault(".".join([*parts[:place], "*", *parts[place + 1 :]]), []).append(path)
                break
    groups: Shapes = {}
    together: dict[str, str] = {}
    for star, paths in starred.items():
        # As many as heads, each with the rows of one: not a list of q, k and v.
        if len(paths) == heads and LOOK["E"] > min(weights[paths[0]][:2]):
            together.update(dict.fromkeys(paths, star))
    for path, shape in weights.items():
        groups[together.get(path, path)] = shape
    return groups


def _bare(path: str) -> str:
    return path.removesuffix(".weight")


def _fused(path: str, shape: tuple[int, ...], groups: Shapes) -> tuple[str, ...]:
    """q, k and v, or k and v, where the layer is one for several."""
    name = re.sub(r"[^a-z]", "", _bare(path).rpartition(".")[2].lower())
    says_three = re.search(r"qkv|wqkv|querykeyvalue|inproj|cattn|kqv|toqkv|vqk|allproj", name) is not None
    says_two = re.search(r"kv", name) is not None and not says_three
    largest = sorted(shape)[-1]
    if len(shape) == 2 and (
        says_three or vocabulary.role_of(_bare(path)) is None or name in ("proj", "projection", "attn", "linear")
    ):
        others = [other for each, other in groups.items() if each != path and len(other) == 2]
        three = any(size in (3 * LOOK["E"], 3 * LOOK["D"]) for size in shape)
        if three and (says_three or len(others) <= 1):
            return ("q", "k", "v")
    if len(shape) == 2 and (says_two or (largest == 2 * LOOK["E"] and vocabulary.role_of(_bare(path)) is None)):
        return ("k", "v")
    return ()


def _creation_order(paths: list[str], definition: Definition, structure: Structure) -> list[str]:
    """Layers in the order in which the source sets them."""
    order = [name for part in structure.reach(definition) for name in part.layers]

    def place(path: str) -> tuple[int, list[object]]:
        parts = path.split(".")
        known = [order.index(part) for part in parts if part in order]
        return (known[0] if known else len(order)), [int(part) if part.isdecimal() else 0 for part in parts]

    return sorted(paths, key=place)


def _layer(path: str, shapes: Shapes, made: dict[str, str], role: str, count: int = 1) -> Layer:
    """The layer at a path: its bias and how its weight is stored."""
    first = path.replace(".*.", ".0.")
    shape = shapes[first]
    if path.endswith(".weight"):
        bias = path.removesuffix("weight") + "bias"
        is_linear = True
    else:
        bias = _bias_beside(path, first, shapes)
        is_linear = False
    layout = "rows"
    if len(shape) == 3:
        layout = _layout_of_heads(shape) if shape[-1] != 1 else "conv"
    elif (is_linear and made.get(_bare(path).rpartition(".")[2]) == "Conv1D") or (
        count > 1 and shape[1] == count * LOOK["E"] and shape[0] != shape[1]
    ):
        layout = "columns"
    elif len(shape) == 2 and shape[0] != shape[1] and not is_linear and role != "o" and count == 1:
        layout = "columns" if shape[1] in (LOOK["D"], LOOK["V"]) and shape[0] not in (LOOK["D"], LOOK["V"]) else "rows"
    return Layer(weight=path, bias=bias, layout=layout)


def _bias_beside(path: str, first: str, shapes: Shapes) -> str:
    """The bias of a weight that is a parameter by itself: `in_proj_bias` of `in_proj_weight`, `b_Q` of `W_Q`."""
    owner, dot, name = path.rpartition(".")
    for old, new in (("weight", "bias"), ("W_", "b_"), ("w_", "b_"), ("W", "b"), ("w", "b")):
        other = f"{owner}{dot}{name.replace(old, new, 1)}"
        if other != path and other in shapes:
            return other
    return ""


def _layout_of_heads(shape: tuple[int, ...]) -> str:
    if shape[0] == LOOK["H"]:
        return "heads" if shape[1] == LOOK["D"] else "heads_columns"
    return "columns_heads"


def _orders(fused: dict[str, tuple[str, ...]], definition: Definition, structure: Structure) -> list[tuple[str, ...]]:
    """The orders of q, k and v in a shared layer: the one in which they are unpacked, by name; every one where nothing says."""
    if not fused:
        return [()]
    path, kind = max(fused.items(), key=lambda one: len(one[1]))
    named = _named_order(_bare(path).rpartition(".")[2])
    if sorted(named) == sorted(kind):
        return [named]
    for part in structure.reach(definition):
        for names in part.unpacked:
            roles = tuple(vocabulary.role_of(name) for name in names)
            if sorted(map(str, roles)) == sorted(kind):
                return [tuple(str(role) for role in roles)]
    return list(itertools.permutations(kind))


def _named_order(name: str) -> tuple[str, ...]:
    """The order that a shared layer's name says: `query_key_value`, `to_kv`, `Wqkv`."""
    short = re.sub(r"[^a-z]", "", name.lower()).replace("query", "q").replace("key", "k").replace("value", "v")
    found = re.search(r"[qkv]{2,3}", short)
    return tuple(found[0]) if found else ()


def _raw(reading: Reading, contract: Contract) -> list[Reading]:
    """Square matrices that are no layers' weights may be stored either way."""
    raw = [
        role
        for role in ("q", "k", "v", "o")
        if reading.layer(role).weight
        and not reading.layer(role).weight.endswith(".weight")
        and reading.layer(role).layout == "rows"
    ]
    if not raw or (contract.kata != "mha" and not contract.has_heads):
        return [reading]
    columns = {role: replace(reading.layer(role), layout="columns") for role in raw}
    return [replace(reading, **columns), reading] if raw else [reading]


# -------------------------------------------------------------------------------------------------------------- calls


def with_call(reading: Reading, definition: Definition, structure: Structure, contract: Contract) -> list[Reading]:
    """The reading with its calls, without a mask."""
    found = [replace(reading, call=_call(definition, contract, mask=False))]
    if not contract.is_module:
        squares = (False, True) if always_causal(definition, structure) else (False,)
        return [replace(one, dims=dims, square=square) for square in squares for dims in (0, 4, 3) for one in found]
    if "dims" in contract.left_out:
        found = [replace(one, dims=3) for one in found]
    elif time_first(definition):
        found = [replace(one, order="time") for one in found] + found
    return found


def _call(definition: Definition, contract: Contract, *, mask: bool) -> Pairs:
    inputs = call_inputs(definition)
    pairs = []
    given = _given(inputs, contract)
    for parameter in definition.call:
        name = parameter.name
        if name in given:
            if given[name] != "mask":
                pairs.append((name, given[name]))
            elif mask:
                pairs.append((name, "mask"))
            elif parameter.default is None:
                pairs.append((name, "None"))
        elif (parameter.default is None or _is_asked(name, contract)) and not name.startswith("*"):
            if "training" in contract.inputs and "train" in name:
                pairs.append((name, "training"))
                continue
            if "p" in contract.inputs and vocabulary.size_of(name) == "p":
                pairs.append((name, "p"))
                continue
            is_flag = vocabulary.plain(name) in vocabulary.CALL_FLAGS
            pairs.append((name, "False" if is_flag else "0.0" if "drop" in name or name == "p" else "None"))
    return tuple(pairs)


def _is_asked(name: str, contract: Contract) -> bool:
    """Whether the contract passes dropout, or the mode, in the call."""
    return ("p" in contract.inputs and vocabulary.size_of(name) == "p") or ("training" in contract.inputs and "train" in name)


def _given(inputs: dict[str, str], contract: Contract) -> dict[str, str]:
    """What each parameter of the call gets, as one of the contract's inputs."""
    if contract.is_module:
        if contract.is_cross:
            other = {"x": "x", "q": "x", "k": "context", "v": "context", "context": "context", "mask": "mask"}
            whole = [what for what in inputs.values() if what != "mask"]
            if "context" not in whole and "k" not in whole and len(whole) > 1:  # (x, y): by place
                names = [name for name, what in inputs.items() if what != "mask"]
                return {**{name: other[what] for name, what in inputs.items()}, names[1]: "context"}
        else:
            other = dict.fromkeys(("x", "q", "k", "v", "context"), "x") | {"mask": "mask"}
        return {name: other[what] for name, what in inputs.items()}
    by_name = {name: what for name, what in inputs.items() if what in ("q", "k", "v", "mask")}
    if sorted(what for what in by_name.values() if what != "mask") == ["k", "q", "v"]:
        return by_name
    plain = [name for name, what in inputs.items() if what != "mask"][:3]
    return {
        **dict(zip(plain, "qkv", strict=False)),
        **{name: "mask" for name, what in inputs.items() if what == "mask"},
    }


def with_mask_call(reading: Reading, definition: Definition, contract: Contract) -> Reading:
    """The reading with a call that passes the mask too."""
    return replace(reading, call=_call(definition, contract, mask=True))


def mask_parameter(definition: Definition) -> Parameter | None:
    """The parameter of the call that takes a mask."""
    inputs = call_inputs(definition)
    return next((one for one in definition.call if inputs.get(one.name) == "mask"), None)


def time_first(definition: Definition) -> bool:
    """Whether the source says that time comes before the batch: in the names of sizes, or in words."""
    for names in definition.sizes:
        said = [_axis(name) for name in names[:2]]
        if said == ["time", "batch"]:
            return True
        if said == ["batch", "time"]:
            return False
    words = r"time[ -]first|\(\s*(?:t|time|seq(?:uence)?(?:_?len(?:gth)?)?|tgt_len|src_len|l|n)\s*[,x×*]\s*(?:b|batch(?:_?size)?|bsz|n)\s*[,x×*]"
    return re.search(words, definition.text, re.IGNORECASE) is not None and "batch_first" not in definition.text


def _axis(name: str) -> str:
    plain = name.lower().strip("_")
    if re.fullmatch(r"b|bs|bsz|batch|batch_?size|nbatches|n_?batch|bz|num_?batch(?:es)?", plain):
        return "batch"
    return (
        "time"
        if re.fullmatch(r"t|l|len|length|seq|seq_?len(?:gth)?|tgt_len|src_len|q_?len|len_q|sl|time|s|steps", plain)
        else ""
    )


def always_causal(definition: Definition, structure: Structure) -> bool:
    """Whether the source says that later keys are hidden."""
    return (
        re.search(
            r"\btril\b|\btriu\b|causal|subsequent|future|look.?ahead|autoregressive|因果",
            structure.text(definition),
            re.IGNORECASE,
        )
        is not None
    )


def residual(definition: Definition, structure: Structure) -> bool:
    """Whether the source may add the input to the output."""
    return (
        re.search(
            r"residual|\+=\s*\w+$|\+\s*(?:x|q|residual|inputs?|query|hidden_states|input_tensor)\b|(?:x|out\w*)\s*=\s*x\s*\+",
            structure.text(definition),
            re.MULTILINE,
        )
        is not None
    )
