"""What each parameter of a call is: the query, the keys, a mask, a flag, by its name and by what the code does with it."""

from __future__ import annotations

import re

from attn_kata.readings.candidates import scores
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Parameter


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
        if what is None and found and not of_state and _hides_keys(parameter.name, definition.reached):
            what = "mask"  # of any name: sperre, blocked
        if what in ("context", "mask") and is_flag(parameter.name, definition.reached):
            continue  # a flag that has the name of an input
        of_states = what == "mask" and vocabulary.plain(parameter.name) == "hidden"  # hidden states, or what is hidden
        if (what is None or of_states) and parameter.default is None and not found:
            what = "x"
        if what == "mask" and (parameter.default in ("True", "False") or parameter.annotation == "bool"):
            continue  # a flag, such as causal_mask=False
        if what == "mask" and re.search(
            rf"(?<![\w.]){re.escape(parameter.name)}\.(?:_?mask|lengths)\b", definition.reached
        ):
            continue  # an object that has a mask
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
    of_x = [name for name, what in found.items() if what != "mask"]
    if len(open_) == 1 and [found[name] for name in of_x] == ["x"]:  # two inputs, and their names say nothing
        takes = _layers_that_take(open_[0], definition.reached)
        if takes == {"k", "v"}:
            found[open_[0]] = "context"
        elif takes == {"q"} and _layers_that_take(of_x[0], definition.reached) == {"k", "v"}:
            found |= {open_[0]: "x", of_x[0]: "context"}
    beside = beside_its_own(definition)
    if beside is not None:  # the keys are those of both inputs
        found = {name: what for name, what in found.items() if what == "mask"} | {beside[1]: "x"}
    if [what for what in found.values() if what != "mask"] == ["context"] and not open_:
        found = {name: "x" if what == "context" else what for name, what in found.items()}  # forward(self, z)
    taken = [name for name, what in found.items() if what == "mask"]
    # Of several masks, the one of the keys or the scores: a mask of the queries hides nothing.
    kept = next((name for name in taken if not name.lower().startswith("q")), taken[0] if taken else None)
    return {name: what for name, what in found.items() if what != "mask" or name == kept}


def beside_its_own(definition: Definition) -> tuple[str, str] | None:
    """Two inputs of which the second makes the queries, and both together the keys: cat((x, latents), dim=-2); or None.

    So the latents of Perceiver Resampler (Alayrac et al., 2022).
    """
    names = [one.name for one in definition.call if one.default is None]
    joined = r"\bcat\(\s*[\[(]\s*(\w+)\s*,\s*(\w+)\s*[\])]\s*,\s*(?:dim\s*=\s*)?(?:1|-2)\s*\)"
    both = re.search(joined, definition.text)
    if both is None or not {both[1], both[2]} <= set(names):
        return None
    of_queries = [name for name in both.groups() if "q" in _layers_that_take(name, definition.text)]
    if len(of_queries) != 1:
        return None
    return (both[1] if of_queries[0] == both[2] else both[2]), of_queries[0]


def _layers_that_take(name: str, text: str) -> set[str | None]:
    """The roles of the layers that the code gives an input to: `self.k_proj(name)`."""
    return {vocabulary.role_of(layer) for layer in re.findall(rf"self\.(\w+)\(\s*{re.escape(name)}\s*\)", text)}


def is_flag(name: str, text: str) -> bool:
    """Whether the code has `if name:`, or `if name and …`, and computes nothing with it: a tensor would not bear that."""
    own = re.escape(name)
    asked = re.search(rf"\b(?:if|elif|while)\s+(?:not\s+)?{own}\s*(?::|\band\b|\bor\b)", text)
    computed = (
        rf"(?<![\w.]){own}(?:\.|\[|\s*[-+*&|=!<>]=?\s*[\w(])|[-+*~&|]\s*{own}\b|(?:fill_?|where|and|or|not)\(\s*{own}\b"
    )
    return (
        asked is not None
        and re.search(computed, re.sub(rf"\b{own}\s*=\s*(?:{own}|None|False|True)\b(?!\s*[.\[(])", "", text)) is None
    )


def _hides_keys(name: str, text: str) -> bool:
    """Whether the code fills or chooses scores where this input says it: masked_fill(blocked, …), where(allowed, …)."""
    return re.search(rf"(?:masked_fill_?|\bwhere)\(\s*[~(]*\s*{re.escape(name)}\b", text) is not None


def may_be_left_out(name: str, text: str) -> bool:
    """Whether the code asks if there is this input: `if name is not None`, `if exists(name)`."""
    own = re.escape(name)
    return (
        re.search(rf"\b(?:if|and|or)\s+(?:not\s+)?(?:exists\(\s*)?{own}\s*(?:\)|:|is (?:not )?None|!= None)", text)
        is not None
    )


def _is_no_tensor(parameter: Parameter) -> bool:
    """Whether the annotation of an input says that it is a module, a function, a text or a number."""
    said = re.search(r"\b(?:Linear|Module|Callable|str|int|float|bool)\b", parameter.annotation) is not None
    return said and "Tensor" not in parameter.annotation


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


def is_of_two_unnamed(definition: Definition) -> bool:
    """Whether the call takes two inputs whose names do not say which of them makes the queries: x and y, x1 and x2."""
    given = [vocabulary.plain(name) for name, what in call_inputs(definition).items() if what != "mask"]
    return len(given) == 2 and all(re.fullmatch(r"[xyz]_?", name) for name in given)


def mask_parameter(definition: Definition, contract: Contract | None = None) -> Parameter | None:
    """The parameter of the call that takes a mask."""
    has_score = contract is not None and contract.has_score
    inputs = scores.inputs(definition) if has_score else call_inputs(definition)
    return next((one for one in definition.call if inputs.get(one.name) == "mask"), None)
