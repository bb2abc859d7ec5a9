"""How a definition can be called without a mask and with one, and whether its source adds the input to the output."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.readings.candidates import arguments, layouts, positions, roles, scores, triangles
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure, code_of

_A_WEIGHT = re.compile(r"^[wW]_?[qkvoQKVO]\w*$|^[qkvo]_?(?:weights?|w|mat(?:rix)?)$")


def fits(definition: Definition, contract: Contract) -> bool:
    """Whether a definition can be an attempt at the kata, by its parameters and calls."""
    if contract.has_score:
        given = set(scores.inputs(definition).values())
        works = bool(definition.layers) or "softmax" in definition.text
        compares = {"q", "k"} <= given or ("v" in contract.layers and scores.pools(definition))
        return definition.is_class and works and compares
    inputs = roles.call_inputs(definition)
    if contract.takes_qkv and not {"k", "v"} <= set(inputs.values()):
        return False
    if contract.is_module:
        return definition.is_class and bool(definition.layers or definition.build) and bool(inputs)
    if definition.is_class and any(
        made in ("Linear", "Parameter", "Conv1d", "Conv1D") for made in definition.layers.values()
    ):
        return False
    if sum(_A_WEIGHT.search(one.name) is not None for one in definition.call) > 1:
        return False  # it projects x by weights that it is given
    return len([what for what in inputs.values() if what != "mask"]) >= 3


def untried(definition: Definition, reading: Reading) -> tuple[str, ...]:
    """The parameters of its call by which it keeps or takes a cache, and which the reading leaves out."""
    passed = {name for name, value in reading.call if value not in ("None", "False")}
    names = [one.name for one in definition.call if re.search(r"cache|past|present", one.name.lower())]
    # What it keeps itself, and no table of rotations.
    kept = re.findall(r"self\.(\w*(?:cache|past_k|kv)\w*)\s*(?:=(?!=)|\[)", code_of(_without_constructor(definition)))
    names += [
        name for name in dict.fromkeys(kept) if not re.search(r"rope|rot|freq|cos|sin|mask|n_|num|size", name.lower())
    ]
    return tuple(name for name in names if name not in passed and name not in reading.caches)


def others_untried(definition: Definition, reading: Reading) -> tuple[str, ...]:
    """The inputs of its call that are of no known kind, and that the code can do without: the reading leaves them out."""
    passed = {*dict(reading.call), *untried(definition, reading)}
    left_out = [one for one in definition.call if one.default == "None" and one.name not in passed]
    return tuple(
        one.name
        for one in left_out
        if vocabulary.input_of(one.name) is None
        and positions.given(one.name, annotation=one.annotation) is None
        and vocabulary.size_of(one.name) is None
        and not re.search(r"pos|rope|rot|freq|head_?mask|scale|return|output", one.name.lower())
        and len(re.findall(rf"\b{re.escape(one.name)}\b", code_of(definition.reached))) > 1
    )


def _without_constructor(definition: Definition) -> str:
    """The methods that its call uses."""
    return re.sub(r"(?ms)^(\s*)def __init__\(.*?(?=^\1(?:def|@)|\Z)", "", definition.reached)


def untried_dropout(definition: Definition, reading: Reading) -> str:
    """The parameter by which a function takes a dropout, and which the reading leaves out; or ""."""
    passed = {name for name, value in reading.call if value not in ("None", "0.0", "nothing_dropped")}
    names = [one.name for one in definition.call if "drop" in one.name.lower() and one.name not in passed]
    return "" if definition.is_class else next(iter(names), "")


def with_call(reading: Reading, definition: Definition, structure: Structure, contract: Contract) -> list[Reading]:
    """The reading with its calls, without a mask."""
    if contract.has_score:
        return scores.ways(replace(reading, call=scores.call(definition, contract, mask=False)), definition)
    found = [replace(reading, call=_call(definition, contract, mask=False))]
    if contract.is_module and not contract.is_cross:
        found = [*(replace(one, call=_lean(one.call, definition)) for one in found), *found]
    if contract.is_self:
        found = [replace(one, call=_together(one.call, definition)) for one in found]
    # Names such as x and y do not say which of them is the context.
    if contract.is_cross and roles.is_of_two_unnamed(definition):
        found += [replace(one, call=_exchanged(one.call)) for one in found]
    found = list(dict.fromkeys(found))
    if not contract.is_module:
        found += [scaled for one in found if (scaled := _with_scale(one, definition)) != one]
        merged = any(value == "H" for one in found for _, value in one.call)
        if not merged and layouts.joins_heads(definition):
            return [replace(one, dims=4, joins=True) for one in found]
        turned = [replace(one, dims=4, joins=True) for one in found] if layouts.turns_heads(definition) else []
        ranks = (4,) if merged else (3,) if layouts.says_three(definition) else (0, 4, 3, 2)
        squares = (False, True) if triangles.always_causal(definition, structure) else (False,)
        orders = [("batch", dims) for dims in ranks] + [("time", 4)] * (
            not merged and layouts.has_heads_third(definition)
        )
        orders += [("time", 3)] * (not merged and layouts.time_first(definition) is True)
        usual = [
            replace(one, dims=dims, order=order, square=square)
            for square in squares
            for order, dims in orders
            for one in found
        ]
        return [*usual, *turned]
    of_any_rank = "dims" in contract.left_out
    turned = [replace(one, order=layouts.channels_first(definition, structure), dims=3 * of_any_rank) for one in found]
    if of_any_rank:
        dimensions = (3,) if layouts.says_batch(definition) else (3, 2)
        found = [replace(one, dims=dims) for dims in dimensions for one in found]
    if contract.is_module and layouts.has_groups(definition, structure):
        found = [*(replace(one, order="groups") for one in found), *found]
    elif turned[0].order:
        found = turned + found
    elif contract.is_self and layouts.four_sizes(definition):
        found = [replace(one, order=order) for order in ("groups", "grid") for one in found] + found
    elif of_any_rank:
        return found
    elif (first := layouts.time_first_anywhere(definition, structure)) is not False:
        time = [replace(one, order="time") for one in found]
        found = time + found if first else found + time
    return found


def _exchanged(call: Pairs) -> Pairs:
    """A call with x for the context, and the context for x."""
    other = {"x": "context", "context": "x"}
    return tuple((name, other.get(value, value)) for name, value in call)


def _lean(call: Pairs, definition: Definition) -> Pairs:
    """A call without what may be left out: code that takes `context=None` attends to x itself then."""
    needed = {parameter.name for parameter in definition.call if parameter.default is None}
    first = next((name for name, _ in call), None)
    return tuple((name, value) for name, value in call if name in needed or name == first or value != "x")


def _together(call: Pairs, definition: Definition) -> Pairs:
    """A call with query, key and value in one tuple, where the code takes it apart: `q, k, v = inputs`."""
    code = code_of(definition.text).rpartition("def forward(")[2]

    def is_tuple(name: str) -> bool:
        """Whether the code does nothing else with it: a tensor has a shape, and is set anew."""
        taken_apart = rf"(?m)^\s*\(?\w+\s*,\s*\w+\s*,\s*\w+\)?\s*=\s*{re.escape(name)}\s*$"
        uses = re.findall(rf"\b{re.escape(name)}\b", code.partition(":\n")[2])
        return len(uses) == 1 and re.search(taken_apart, code) is not None

    return tuple((name, "qkv" if value == "x" and is_tuple(name) else value) for name, value in call)


def _has_no_other(scale: str, definition: Definition) -> bool:
    """Whether a function has no scale of its own, which one that is handed in would hide."""
    code = re.sub(r"(?s)\bdef \w+\(.*?\).*?:\n", "", code_of(definition.text))
    of_its_own = rf"sqrt|\*\*|\bpow\(|(?:\belse|\bor)\b[^\n]*[/*]|\b{re.escape(scale)}\s*[*/]?=(?!=)"
    return re.search(of_its_own, code) is None


def _with_scale(reading: Reading, definition: Definition) -> Reading:
    """The reading with a scale that the caller of a function may set: a number, or none at all, where none is given."""
    names = [one.name for one in definition.call if re.fullmatch(r"[\d.]+", one.default or "")]
    names += [one.name for one in definition.call if one.default == "None" and _has_no_other(one.name, definition)]
    scales = [(name, vocabulary.size_in(name, definition.text)) for name in names]
    passed = {name for name, _ in reading.call}
    more = tuple((name, symbol) for name, symbol in scales if symbol in ("sqrt(D)", "1/sqrt(D)") and name not in passed)
    return replace(reading, call=(*reading.call, *more))


def _call(definition: Definition, contract: Contract, *, mask: bool) -> Pairs:
    inputs = roles.call_inputs(definition)
    pairs = []
    given = _given(inputs, contract)
    beside = roles.beside_its_own(definition) if contract.is_self else None
    for parameter in definition.call:
        name = parameter.name
        if beside is not None and name == beside[0]:
            pairs.append((name, "no_tokens"))
        elif name in given:
            if given[name] != "mask":
                pairs.append((name, given[name]))
            elif mask:
                pairs.append((name, "mask"))
            elif parameter.default is None:
                pairs.append((name, "None"))
        elif mask and _switches_mask(parameter, definition):
            pairs.append((name, "masked"))
        elif (
            contract.is_module
            and (about := positions.given(name, needed=parameter.default is None, annotation=parameter.annotation))
            is not None
        ):
            if about == "angles" and parameter.default == "None" and roles.may_be_left_out(name, definition.reached):
                pairs.append((name, "None"))
            elif about != "0" or parameter.default is None:
                pairs.append((name, about))
        elif parameter.default == "True" and arguments.READY_MADE.search(name):
            pairs.append((name, "False"))  # another path, which calls what is ready-made
        elif ("p" not in contract.inputs and _is_callers_dropout(parameter, definition)) or (
            "drop" in name.lower() and re.search(r"Module|Dropout", parameter.annotation) and parameter.default is None
        ):
            pairs.append((name, "nothing_dropped"))
        elif not contract.is_module and _splits_heads(name, definition):
            pairs.append((name, "H"))
        elif (
            not definition.is_class
            and parameter.default is None
            and (name == "module" or "Module" in parameter.annotation)
        ):
            pairs.append((name, "module"))
        elif (parameter.default is None or _is_asked(name, contract)) and not name.startswith("*"):
            if "training" in contract.inputs and "train" in name:
                pairs.append((name, "training"))
                continue
            if "p" in contract.inputs and vocabulary.size_of(name) == "p":
                pairs.append((name, "p"))
                continue
            size = vocabulary.size_in(name, definition.text)
            if vocabulary.plain(name) in ("d", "dim") and re.search(
                rf"sqrt\(\s*{name}\b|\b{name}\s*\*\*", definition.text
            ):
                size = "D"
            if not contract.is_module and size in ("D", "sqrt(D)", "1/sqrt(D)"):  # of the vectors that it is given
                pairs.append((name, size))
                continue
            is_flag = vocabulary.plain(name) in vocabulary.CALL_FLAGS or roles.is_flag(name, definition.reached)
            if contract.returns and vocabulary.plain(name) in vocabulary.WEIGHTS_FLAGS:
                pairs.append((name, "True"))
                continue
            if not contract.is_module and _is_size_of_a_tile(parameter):
                pairs.append((name, "2"))
                continue
            if not contract.is_module and parameter.default is None and vocabulary.size_of(name) == "H":
                pairs.append((name, "1"))  # the heads lie in the batch, and it is told how many
                continue
            is_nothing = "drop" in name or name == "p" or re.match("resid|skip|shortcut", name) is not None
            pairs.append((name, "False" if is_flag else "0.0" if is_nothing else "None"))
    return tuple(pairs)


def _is_size_of_a_tile(parameter: Parameter) -> bool:
    """Whether a function must be told how many queries or keys it takes at a time: Br, block_size, tile."""
    named = re.search(r"(?i)block|tile|chunk", parameter.name) or re.fullmatch(r"[bB]_?[rcqkRCQKmnMN]", parameter.name)
    return parameter.default is None and named is not None and parameter.annotation in ("", "int")


def _switches_mask(parameter: Parameter, definition: Definition) -> bool:
    """Whether a parameter says whether the mask is used: use_mask=False."""
    # Not causal_mask, which makes one, nor masked, which may.
    named = re.fullmatch(r"(?:use|with|apply|enable|has)_?(?:the_?)?masks?(?:ing)?", parameter.name, re.IGNORECASE)
    return named is not None and (parameter.default == "False" or roles.is_flag(parameter.name, definition.reached))


def _splits_heads(name: str, definition: Definition) -> bool:
    """Whether a function is told the number of heads by a parameter, and divides the width by it, or has einops do it."""
    own = rf"{re.escape(name)}\b"
    divides = (
        re.search(rf"//\s*{own}|rearrange\([^()]*(?:\([^()]*\)[^()]*)*\b\w+\s*=\s*{own}", definition.text) is not None
    )
    return divides and vocabulary.size_of(name) == "H"


def _is_callers_dropout(parameter: Parameter, definition: Definition) -> bool:
    """Whether a parameter is a dropout that the code calls, and cannot do without."""
    if "drop" not in parameter.name.lower():
        return False
    name = re.escape(parameter.name)
    called = re.search(rf"(?<![\w.]){name}\(", definition.text) is not None
    return (
        called
        and re.search(rf"\bif {name}(?: is not None)?\b|\bif not {name}\b|{name} is None", definition.text) is None
    )


def _is_asked(name: str, contract: Contract) -> bool:
    """Whether the contract passes dropout, or the mode, in the call, or wants the weights back."""
    return (
        ("p" in contract.inputs and vocabulary.size_of(name) == "p")
        or ("training" in contract.inputs and "train" in name)
        or (bool(contract.returns) and vocabulary.plain(name) in vocabulary.WEIGHTS_FLAGS)
    )


def _given(inputs: dict[str, str], contract: Contract) -> dict[str, str]:
    """What each parameter of the call gets, as one of the contract's inputs."""
    if contract.is_module:
        if contract.takes_qkv:
            other = {"x": "query", "q": "query", "k": "key", "v": "value", "context": "key", "mask": "mask"}
        elif contract.is_cross:
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
    """The reading with a call that passes the mask too, and no other input than before."""
    passed = dict(reading.call)
    whole = (
        scores.call(definition, contract, mask=True) if contract.has_score else _call(definition, contract, mask=True)
    )
    named = dict(whole)
    scales = tuple((name, value) for name, value in passed.items() if "sqrt" in value and name not in named)
    kept = tuple(
        (name, value if value in ("mask", "masked") else passed[name])
        for name, value in whole
        if value in ("mask", "masked") or name in passed
    )
    return replace(reading, call=kept + scales)


def residual(definition: Definition, structure: Structure) -> tuple[bool, ...]:
    """Whether the source adds the input to the output, the likeliest first; one alone where it leaves no doubt."""
    code = code_of(definition.text)
    given = "|".join(re.escape(name) for name, what in roles.call_inputs(definition).items() if what != "mask") or "x"
    kept = re.findall(rf"^\s*(\w+)\s*=\s*(?:{given})(?:\.clone\(\))?\s*$", code, re.MULTILINE)  # residual = x
    names = rf"(?:{'|'.join([given, *map(re.escape, kept)])})"
    result = r"\w*(?:out|res|attn|context|h|x|y|z)\w*"
    added = rf"\b{result}\)*\s*\+=?\s*{names}\b(?!\.)|\b{names}\s*\+\s*(?:self\.\w+\(|\w*out)"
    if re.search(rf"{added}|\breturn {names}\s*\+\s*\w+\s*$", code, re.MULTILINE):
        return (True, False)
    adds = rf"\)\s*\+\s*{names}\b(?!\.)|\b{names}\s*\+\s*\w"
    may_add = _ADDS_INPUT.search(structure.text(definition)) or re.search(adds, code)
    return (False, True) if may_add else (False,)


_ADDS_INPUT = re.compile(
    r"residual|\+=\s*\w+$|\+\s*(?:x|q|residual|inputs?|query|hidden_states|input_tensor)\b|(?:x|out\w*)\s*=\s*x\s*\+",
    re.MULTILINE,
)
