"""How a definition can be called, and what its source says of the call: time first, causal, a residual."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.readings import positions, scores, vocabulary
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.structure import Definition, Parameter, Structure, code_of


def fits(definition: Definition, contract: Contract) -> bool:
    """Whether a definition can be an attempt at the kata, by its parameters and calls."""
    if contract.has_score:
        given = scores.inputs(definition).values()
        works = bool(definition.layers) or "softmax" in definition.text
        return definition.is_class and works and {"q", "k"} <= set(given)
    inputs = call_inputs(definition)
    if contract.takes_qkv and not {"k", "v"} <= set(inputs.values()):
        return False
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
        # What an earlier call has left is no input: enc_attn_cache=None.
        may_be_none = parameter.default is not None or re.search(r"Optional|None", parameter.annotation) is not None
        of_state = re.search(r"cache|past", parameter.name.lower()) and (
            may_be_none or "past" in parameter.name.lower()
        )
        what = None if of_state or _is_no_tensor(parameter) else vocabulary.input_of(parameter.name)
        if what in ("context", "mask") and _is_flag(parameter.name, definition.reached):
            continue  # a flag that has the name of an input
        if what is None and parameter.default is None and not found:
            what = "x"
        if what == "mask" and (parameter.default in ("True", "False") or parameter.annotation == "bool"):
            continue  # a flag, such as causal_mask=False
        if what is not None:
            found[parameter.name] = what
    open_ = [
        one.name
        for one in definition.call
        if one.default is None and one.name not in found and not one.name.startswith("*") and not _is_no_tensor(one)
    ]
    if len(open_) == 1 and "q" in found.values() and not {"k", "v", "context"} & set(found.values()):
        found[open_[0]] = "context"  # what else could the queries attend to?
    elif len(open_) == 1 and "context" in found.values() and not {"x", "q", "k", "v"} & set(found.values()):
        found[open_[0]] = "x"  # the context comes first: forward(encoder_outputs, decoder_inputs)
    if [what for what in found.values() if what != "mask"] == ["context"] and not open_:
        found = {name: "x" if what == "context" else what for name, what in found.items()}  # forward(self, z)
    taken = [name for name, what in found.items() if what == "mask"]
    # Of several masks, the one of the keys or the scores: a mask of the queries hides nothing.
    kept = next((name for name in taken if not name.lower().startswith("q")), taken[0] if taken else None)
    return {name: what for name, what in found.items() if what != "mask" or name == kept}


def _is_flag(name: str, text: str) -> bool:
    """Whether the code has `if name:`, or `if name and …`, and computes nothing with it: a tensor would not bear that."""
    own = re.escape(name)
    asked = re.search(rf"\b(?:if|elif|while)\s+(?:not\s+)?{own}\s*(?::|\band\b|\bor\b)", text)
    computed = (
        rf"(?<![\w.]){own}(?:\.|\[|\s*[-+*&|=!<>]=?\s*[\w(])|[-+*~&|]\s*{own}\b|(?:fill_?|where|and|or|not)\(\s*{own}\b"
    )
    return (
        asked is not None
        and re.search(computed, re.sub(rf"\b{own}\s*=\s*(?:{own}|None|False|True)\b", "", text)) is None
    )


def _is_no_tensor(parameter: Parameter) -> bool:
    """Whether the annotation of an input says that it is a module, a function, a text or a number."""
    said = re.search(r"\b(?:Linear|Module|Callable|str|int|float|bool)\b", parameter.annotation) is not None
    return said and "Tensor" not in parameter.annotation


def untried(definition: Definition, reading: Reading) -> tuple[str, ...]:
    """The parameters of its call by which it keeps or takes a cache, and which the reading leaves out."""
    passed = {name for name, value in reading.call if value not in ("None", "False")}
    names = [one.name for one in definition.call if re.search(r"cache|past|present", one.name.lower())]
    return tuple(name for name in names if name not in passed)


def untried_dropout(definition: Definition, reading: Reading) -> str:
    """The parameter by which a function takes a dropout, and which the reading leaves out; or ""."""
    passed = {name for name, value in reading.call if value not in ("None", "0.0", "nothing_dropped")}
    names = [one.name for one in definition.call if "drop" in one.name.lower() and one.name not in passed]
    return "" if definition.is_class else next(iter(names), "")


def other_masks(definition: Definition, reading: Reading, contract: Contract) -> tuple[str, ...]:
    """The parameters of its call that take masks of keys, beside the one that the reading passes.

    Not a mask of what the call does not have: of heads, of queries, of a context in self-attention.
    """
    passed = {name for name, _ in reading.call}
    if "mask" not in dict(reading.call).values():
        return ()
    of_others = r"^q(?:uery)?_|head" if contract.is_cross else r"^q(?:uery)?_|head|enc|mem|context|ctx|cross|src|bias"
    return tuple(
        one.name
        for one in definition.call
        if vocabulary.input_of(one.name) == "mask" and one.name not in passed
        if one.default == "None" and not re.search(of_others, one.name.lower())
    )


def with_call(reading: Reading, definition: Definition, structure: Structure, contract: Contract) -> list[Reading]:
    """The reading with its calls, without a mask."""
    if contract.has_score:
        return scores.ways(replace(reading, call=scores.call(definition, contract, mask=False)), definition)
    found = [replace(reading, call=_call(definition, contract, mask=False))]
    if contract.is_module and not contract.is_cross:
        found = [*(replace(one, call=_lean(one.call, definition)) for one in found), *found]
    # Names such as x and y do not say which of them is the context.
    if contract.is_cross and is_of_two_unnamed(definition):
        found += [replace(one, call=_exchanged(one.call)) for one in found]
    found = list(dict.fromkeys(found))
    if not contract.is_module:
        found += [scaled for one in found if (scaled := _with_scale(one, definition)) != one]
        merged = any(value == "H" for one in found for _, value in one.call)
        if not merged and _joins_heads(definition):
            return [replace(one, dims=4, joins=True) for one in found]
        turned = [replace(one, dims=4, joins=True) for one in found] if _turns_heads(definition) else []
        ranks = (4,) if merged else (3,) if _says_three(definition) else (0, 4, 3, 2)
        squares = (False, True) if always_causal(definition, structure) else (False,)
        orders = [("batch", dims) for dims in ranks] + [("time", 4)] * (not merged and _has_heads_third(definition))
        usual = [
            replace(one, dims=dims, order=order, square=square)
            for square in squares
            for order, dims in orders
            for one in found
        ]
        return [*usual, *turned]
    of_any_rank = "dims" in contract.left_out
    turned = [replace(one, order=_channels_first(definition, structure), dims=3 * of_any_rank) for one in found]
    if of_any_rank:
        found = [replace(one, dims=dims) for dims in (3, 2) for one in found]
    if turned[0].order:
        found = turned + found
    elif of_any_rank:
        return found
    elif (first := _time_first_anywhere(definition, structure)) is not False:
        time = [replace(one, order="time") for one in found]
        found = time + found if first else found + time
    return found


_OF_IMAGES = re.compile(
    r"\b(?:b|n|bs|bsz|batch\w*|_)\s*,\s*(?:c|ch\w*|(?:in_|n_)?channels?|\w*dim|d|e)\s*,\s*(?:h|h\w*|ht)\s*,\s*(?:w|w\w*)\b"
    r"|\bb c h w\b|\bConv2d\(",
    re.IGNORECASE,
)


_PLACES = re.compile(r"l$|l_|len|seq|t$|t_|time|n_?(?:points|tokens)$")


def _channels_first(definition: Definition, structure: Structure) -> str:
    """The order in which the channels come before the places, where sizes or convolutions say so: image, channels, or ""."""
    text = structure.reached(definition)
    if _OF_IMAGES.search(text):
        return "image"
    of_places = any(
        len(sizes) == 3 and _axis(sizes[0]) == "batch" and _axis(sizes[1]) == "" and _PLACES.match(sizes[2].lower())
        for sizes in definition.sizes
    )
    return "channels" if of_places or re.search(r"\bConv1d\(", text) else ""


def _joins_heads(definition: Definition) -> bool:
    """Whether a function takes heads, and ends with lines that lay them side by side: (B, H, T, D) to (B, T, H D)."""
    code = code_of(definition.text)
    after = re.split(r"softmax", code)[-1]
    turned = r"(?:transpose\(\s*-?[12]\s*,\s*-?[123]\s*\)|permute\(\s*\(?0\s*,\s*2\s*,\s*1\s*,\s*3)"
    size = r"(?:[^(),]|\([^()]*\))+"
    joined = rf"{turned}[\s\S]*?(?:\.flatten\(\s*-?2|(?:view|reshape)\({size},{size},{size},?\s*\))"
    by_einops = r"rearrange\([^\n]*[\"']\s*\w+ (\w+) (\w+) (\w+)\s*->\s*\w+ \2 \(\s*\1 \3\s*\)"
    return not definition.is_class and re.search(f"{joined}|{by_einops}", after, re.IGNORECASE) is not None


_OF_THREE = re.compile(r"\bq(?:uery|ueries)?\b[^\n]*[\[(]\s*\w*b\w*\s*,\s*\w+\s*,\s*\w+\s*[\])]", re.IGNORECASE)


def _says_three(definition: Definition) -> bool:
    """Whether its words say that queries are (batch, length, size), and it looks how many dimensions its mask has."""
    by_rank = re.search(r"mask\w*\.(?:dim\(\)|ndim)", code_of(definition.text)) is not None
    return by_rank and _OF_THREE.search(definition.text) is not None


def _turns_heads(definition: Definition) -> bool:
    """Whether a function ends with lines that put the heads behind the tokens: (B, H, T, D) to (B, T, H, D)."""
    after = re.split(r"softmax", code_of(definition.text))[-1]
    turned = r"transpose\(\s*(?:1\s*,\s*2|-3\s*,\s*-2|-2\s*,\s*-3)\s*\)|permute\(\s*\(?0\s*,\s*2\s*,\s*1\s*,\s*3"
    return not definition.is_class and re.search(turned, after) is not None


def _has_heads_third(definition: Definition) -> bool:
    """Whether a function may take (B, T, H, D): it exchanges the second and third dimension, or an einsum does."""
    code = code_of(definition.text)
    for one in re.findall(r"einsum\(\s*[\"']([^\"']+)[\"']", code):
        given, _, result = re.sub(r"\s", "", one).partition("->")
        first = given.partition(",")[0]
        if len(first) == len(result) == 4 and (first[1], first[2]) == (result[2], result[1]):
            return True
    return re.search(r"transpose\(\s*1\s*,\s*2\s*\)|permute\(\s*\(?0\s*,\s*2\s*,\s*1", code) is not None


def is_of_two_unnamed(definition: Definition) -> bool:
    """Whether the call takes two inputs whose names do not say which of them makes the queries: x and y, x1 and x2."""
    given = [vocabulary.plain(name) for name, what in call_inputs(definition).items() if what != "mask"]
    return len(given) == 2 and all(re.fullmatch(r"[xyz]_?", name) for name in given)


def _exchanged(call: Pairs) -> Pairs:
    """A call with x for the context, and the context for x."""
    other = {"x": "context", "context": "x"}
    return tuple((name, other.get(value, value)) for name, value in call)


def _lean(call: Pairs, definition: Definition) -> Pairs:
    """A call without what may be left out: code that takes `context=None` attends to x itself then."""
    needed = {parameter.name for parameter in definition.call if parameter.default is None}
    first = next((name for name, _ in call), None)
    return tuple((name, value) for name, value in call if name in needed or name == first or value != "x")


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
        elif contract.is_module and (about := positions.given(name, needed=parameter.default is None)) is not None:
            if about != "0" or parameter.default is None:
                pairs.append((name, about))
        elif parameter.default == "True" and re.search(r"flash|sdpa|fused|efficient", name.lower()):
            pairs.append((name, "False"))  # another path, which calls what is ready-made
        elif "p" not in contract.inputs and _is_callers_dropout(parameter, definition):
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
            is_flag = vocabulary.plain(name) in vocabulary.CALL_FLAGS or _is_flag(name, definition.reached)
            if contract.returns and vocabulary.plain(name) in vocabulary.WEIGHTS_FLAGS:
                pairs.append((name, "True"))
                continue
            is_nothing = "drop" in name or name == "p" or re.match("resid|skip|shortcut", name) is not None
            pairs.append((name, "False" if is_flag else "0.0" if is_nothing else "None"))
    return tuple(pairs)


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
        (name, value if value == "mask" else passed[name]) for name, value in whole if value == "mask" or name in passed
    )
    return replace(reading, call=kept + scales)


def mask_parameter(definition: Definition, contract: Contract | None = None) -> Parameter | None:
    """The parameter of the call that takes a mask."""
    has_score = contract is not None and contract.has_score
    inputs = scores.inputs(definition) if has_score else call_inputs(definition)
    return next((one for one in definition.call if inputs.get(one.name) == "mask"), None)


def _time_first_anywhere(definition: Definition, structure: Structure) -> bool | None:
    """What the source of a definition says, or else what those say that it uses, where they agree."""
    own = time_first(definition)
    if own is not None:
        return own
    said = {time_first(one) for one in structure.reach(definition)} - {None}
    return said.pop() if len(said) == 1 else None


def time_first(definition: Definition) -> bool | None:
    """Whether the source says that time comes before the batch: in the names of sizes, or in words. None: it says nothing."""
    for names in definition.sizes:
        said = [_axis(name) for name in names[:2]]
        if said == ["time", "batch"]:
            return True
        if said == ["batch", "time"]:
            return False
    time = r"(?:t|time|seq(?:uence)?(?:_?len(?:gth)?)?|[a-z]*_?len|l|n)"
    batch = r"(?:b|batch(?:_?size)?|bsz|n)"
    words = rf"time[ -]first|time x batch|[(\[]\s*{time}\s*[,x×*]\s*{batch}\s*[,x×*]"
    if "batch_first" in definition.text:
        return False
    if re.search(words, definition.text, re.IGNORECASE):
        return True
    batch_first = rf"batch[ -]first|[(\[]\s*{batch}\s*[,x×*]\s*{time}\b"
    batch_first += r"|\b(?:b|bs|bsz|batch\w*)\b[^\n]*=[^\n]*(?:size\(0\)|shape\[0\])"
    return False if re.search(batch_first, definition.text, re.IGNORECASE) else None


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
    """Whether the source says that later keys are hidden, or compares positions with each other."""
    text = structure.reached(definition)
    said = re.search(r"\btri[lu]_?\b|causal|因果|subsequent|look_?ahead|autoregress", text, re.IGNORECASE)
    in_a_loop = r"\b\w+\s*\+\s*1\s*:\s*\]"  # scores[..., i, i + 1 :] = -inf
    code = code_of(text)
    return said is not None or re.search(in_a_loop, code) is not None or _compares_positions(code)


def _ranges(code: str) -> set[str]:
    """The names that stand for a range of positions, and `arange` itself."""
    return {"arange", *re.findall(r"\b(\w+)\s*=\s*[^\n=]*\barange\(", code)}


def _compares(line: str, ranges: set[str]) -> bool:
    """Whether a line compares two ranges of positions. One name on both sides is none: `where(d < 8, d, 8)`."""
    sides = re.split(r"(?<!-)[<>]=?", line, maxsplit=1)
    if len(sides) < 2:
        return False
    left, right = (set(re.findall(r"\w+", side)) & ranges for side in sides)
    return bool(left and right) and (len(left | right) > 1 or "arange" in left)


def _compares_positions(code: str) -> bool:
    """Whether a line of the code compares two ranges of positions."""
    ranges = _ranges(code)
    return any(_compares(line, ranges) for line in code.split("\n"))


def is_switched_off(reading: Reading, definition: Definition) -> bool:
    """Whether an argument that the code is built or called with, False or None, says that nothing is masked."""
    given = {**dict(reading.build), **dict(reading.call)}
    flags = (*definition.build, *(one for one in definition.call if one.default == "False"))
    off = {one.name for one in flags if given.get(one.name, one.default) in ("False", "None")}
    off |= _set_to_false(definition)
    return any(_SWITCH.search(name) or "mask" in name.lower() or name in _guards(definition.reached) for name in off)


def _set_to_false(definition: Definition) -> set[str]:
    """The attributes that a class sets to False, whatever its base is given."""
    return set(re.findall(r"self\.(\w+)\s*=\s*False\b", code_of(definition.reached)))


def switched_on(reading: Reading, definition: Definition, structure: Structure) -> Reading | None:
    """The reading with the triangle that the code makes under a flag which the reading leaves off; None without one."""
    code = code_of(structure.reached(definition))
    if re.search(r"\btri[lu]_?\(", code) is None:
        return None
    guards = _guards(code)

    def on(pairs: Pairs, flags: tuple[Parameter, ...]) -> Pairs:
        given = dict(pairs) | {
            one.name: "False" for one in flags if one.default == "False" and one.name not in dict(pairs)
        }
        last = {name: name.rpartition(".")[2] for name in given}
        switched = {name for name in given if _SWITCH.search(last[name]) or last[name] in guards}
        changed = {name for name in switched if given[name] == "False" and not re.search("cross", name, re.IGNORECASE)}
        changed -= {name for name in changed if last[name] in _set_to_false(definition)}
        return tuple(
            (name, "True" if name in changed else given[name])
            for name in given
            if name in dict(pairs) or name in changed
        )

    build, call = on(reading.build, definition.build), on(reading.call, definition.call)
    same = (build, call) == (reading.build, reading.call)
    return None if same else replace(reading, build=build, call=call, causal=True)


def makes_triangle(definition: Definition, structure: Structure) -> bool:
    """Whether the code makes a triangle for itself, and no argument switches it off."""
    text = structure.reached(definition)
    flags = {parameter.name for parameter in (*definition.build, *definition.call)} | set(definition.config_names)
    if any(_SWITCH.search(name) for name in flags) or flags & _guards(text):
        return False
    code = code_of(text)
    made = re.search(r"\btri[lu]_?\b", code) is not None or _compares_positions(code)
    parameter = mask_parameter(definition)
    return made and (parameter is None or "register_buffer" in code or _is_unconditional(code, parameter.name))


def _is_unconditional(code: str, mask: str) -> bool:
    """Whether a triangle is made in every call: in no branch, and not where a mask is only looked at."""
    lines, ranges = [line for line in code.split("\n") if line.strip()], _ranges(code)
    for place, line in enumerate(lines):
        made = re.search(r"\btri[lu]_?\(", line) is not None and re.search(rf"\btri[lu]\(\s*{mask}\b", line) is None
        if not made and not _compares(line, ranges):
            continue
        function = _function_around(place, lines)
        if not re.search(r"\bif\b", line) and function and _is_always_called(function, lines):
            return True
    return False


def _function_around(place: int, lines: list[str]) -> str:
    """The function whose body a line is in, and no branch or loop of it; "" where it is in one."""
    depth = len(lines[place]) - len(lines[place].lstrip())
    outer = [before for before in lines[:place] if len(before) - len(before.lstrip()) < depth]
    found = re.match(r"\s*def (\w+)", outer[-1]) if outer else None
    return found[1] if found else ""


def _is_always_called(function: str, lines: list[str], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a function is called in no branch of those that call it; one that nothing calls is the call itself."""
    places = [place for place, line in enumerate(lines) if re.search(rf"(?<!def )\b{function}\(", line)]
    around = [_function_around(place, lines) for place in places if not re.search(r"\bif\b", lines[place])]
    return not places or any(
        one and one not in seen and _is_always_called(one, lines, seen | {function}) for one in around
    )


# "casual" is how causal is often misspelt.
_SWITCH = re.compile(r"ca(?:us|su)al|masked|autoreg|decoder|use_?mask|unidirect", re.IGNORECASE)


def _guards(text: str) -> set[str]:
    """The names that an `if` around a triangle asks: `if look_back: mask = torch.tril(…)`, or around what is made of one."""
    found: set[str] = set()
    lines = [line for line in text.split("\n") if line.strip()]
    kept = re.findall(r"(?:register_buffer\(\s*[\"']|self\.)(\w+)(?:[\"'],|\s*=)\s*torch\.tri[lu]\(", text)
    triangle = "|".join((r"\btri[lu]_?\(", *(rf"\bself\.{name}\b" for name in kept)))
    for place, line in enumerate(lines):
        if not re.search(triangle, line):
            continue
        depth = len(line) - len(line.lstrip())
        for before in reversed(lines[:place]):
            indent = len(before) - len(before.lstrip())
            if indent < depth:
                depth = indent
                asked = re.match(r"\s*(?:el)?if\b[\s(]*(?:self\.)?(\w+)\s*(?:is True|== True)?[\s)]*:", before)
                found |= {asked[1]} if asked else set()
    return found


def residual(definition: Definition, structure: Structure) -> tuple[bool, ...]:
    """Whether the source adds the input to the output, the likeliest first; one alone where it leaves no doubt."""
    code = code_of(definition.text)
    given = "|".join(re.escape(name) for name, what in call_inputs(definition).items() if what != "mask") or "x"
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
