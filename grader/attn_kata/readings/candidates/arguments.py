"""What to give a parameter of a constructor, or a name of its config: a size by its letter, a flag, a word."""

from __future__ import annotations

import re

from attn_kata.readings.candidates import positions, scores
from attn_kata.readings.contract import Contract
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, code_of

PLACE_OF_LAYER = re.compile(r"(?i)layer_?(?:idx|id|index|num|number|i)")
_SWITCH = re.compile(r"(?:use|is|has|with|enable|do)_")
WINDOW = "(1,L)"  # its height and its width: as long as the input
_DIRECTIONS = re.compile(r"(?i)(?:^|_)n(?:um)?_?dir(?:s|ections?)?$")  # of an RNN, by which a width is multiplied
_LAYERS_OF_AN_RNN = re.compile(r"(?i)n(?:um(?:ber_of)?)?_?(?:rnn_|gru_|lstm_|encoder_|decoder_)?layers?$")


_BASE = re.compile(
    r"(?:rope_?|rotary_?)?theta|(?:rope|rotary|freq)_?base"
)  # of the angles of a rotation: with 0 there are none


def symbol_of(parameter: Parameter, definition: Definition, text: str, contract: Contract) -> str | None:
    """What to give a parameter of the constructor, or None to leave it out or to guess."""
    if parameter.default is None and _BASE.fullmatch(parameter.name.lower()):
        return "10000.0"
    if parameter.default is None and contract.is_module and positions.is_rotation(parameter.name):
        return _rotation(parameter, text)
    if parameter.default in (None, "None") and _LOGGER.fullmatch(parameter.name):
        return "logger"
    handed = rf"deepcopy\(\s*{re.escape(parameter.name)}\s*\)|self\.\w+\s*=\s*{re.escape(parameter.name)}\s*(?:#.*)?$"
    if parameter.default is None and _A_LAYER.search(parameter.name.lower()) and re.search(handed, text, re.MULTILINE):
        return "linear"
    if parameter.default is None and _is_only_kept(parameter.name, definition):
        return "None"  # the activation of SAGAN, which it never calls
    if parameter.default is None and _COARSER.fullmatch(parameter.name.lower()):
        return "1"
    if parameter.default is None and (PLACE_OF_LAYER.fullmatch(parameter.name) or _DIRECTIONS.search(parameter.name)):
        return "1"
    if parameter.default is None and contract.has_score and _LAYERS_OF_AN_RNN.match(parameter.name):
        return "1"
    of_layers = contract.is_module and not contract.has_score
    if of_layers and parameter.default != "None" and _is_window_of_two(parameter.name, text):
        return WINDOW
    if of_layers and parameter.default != "None" and _is_side_of_a_window(parameter.name, text):
        return "1"  # its table of biases then fits any number of tokens
    if parameter.default is not None and parameter.default.startswith(("(", "[")):
        return None  # several numbers, as feat_sizes=(32, 32)
    symbol = vocabulary.size_in(parameter.name, text)
    words = allowed(parameter.name, text)
    of_scores = contract.has_score and len(words) > 1 and scores.kind_of(contract, words) in words
    if of_scores or (contract.has_score and scores.KIND.search(parameter.name.lower())):
        return scores.kind_of(contract, words)
    if words and parameter.default is None:
        return words[0]
    if parameter.default == "False" and _SCALES.fullmatch(parameter.name.lower()):
        return "True"  # whether the scores are divided
    if parameter.default == "True" and READY_MADE.search(parameter.name) and _has_its_own_softmax(text):
        return "False"  # another path, which calls what is ready-made
    if parameter.default in ("True", "False") and symbol not in ("True", "False", "None"):
        return None  # a flag with the name of a size: talking_heads=False
    if symbol is None:
        if parameter.default is not None:
            return None
        by_type = {"bool": "False", "float": "0.0", "str": "None"}.get(parameter.annotation)
        return "False" if _SWITCH.match(parameter.name.lower()) else by_type
    if symbol in ("sqrt(D)", "1/sqrt(D)", "2") and parameter.default is not None:
        return None
    if symbol == "True" and "bias" in parameter.name.lower() and not _is_bias_of_a_layer(parameter.name, text):
        return None  # of parameters of its own, which the contract's layers do not have
    if symbol == "L" and parameter.default == "None" and _WITHOUT_TABLE.search(text) is None:
        return None  # a table of that length that it can do without
    if symbol in ("E", "D") and parameter.default == "None" and _is_switch(parameter.name, definition):
        return None  # what it switches on: attention_size, of a window
    if symbol == "D" and parameter.default == "None" and _is_as_wide_as_x(parameter.name, definition):
        return None
    is_size = parameter.name.lower().endswith("size")
    is_size = is_size or re.search(rf"Linear\(\s*{re.escape(parameter.name)}\s*,", text) is not None
    if symbol in ("E", "D") and parameter.default in ("0", "1", "-1", "-2") and not is_size:
        return None  # an axis, with the name of a size: row_dim=0
    if contract.has_score and symbol is not None and (of_input := scores.width_of_input(parameter.name, definition)):
        return of_input
    if symbol == "E" and "I" in [each for each, _ in contract.arguments] and not contract.has_score:
        symbol = _end_of_layers(parameter.name, definition, text) or symbol
    if symbol == "D" and contract.is_cross and _end_of_layers(parameter.name, definition, text) == "I":
        symbol = "E" if "q" in vocabulary.plain(parameter.name) else "C"  # what keys are made of: key_dim
    return _for_contract(symbol, parameter.name, [one.name for one in definition.build], contract, parameter.default)


# A flag that chooses an attention that is ready-made: use_flash, use_pytorch_mha, fused_attn.
READY_MADE = re.compile(r"(?i)flash|sdpa|fused|(?<!co)efficient|optimi[sz]ed|torch|(?:^|_)native|built_?in|xformers")


def _has_its_own_softmax(text: str) -> bool:
    return re.search(r"softmax\(|\.exp\(|Softmax\(", code_of(text)) is not None


def _is_as_wide_as_x(name: str, definition: Definition) -> bool:
    """Whether a size that is left out is a width of x: `if d_value is None: d_value = d_model`."""
    own = re.escape(name)
    other = r"(?:self\.)?(\w+)\b(?!\s*[-+*/(.\[])"
    ways = rf"if\s+{own}\s+is\s+None\s*:\s*{own}\s*=\s*{other}|\b{own}\s+or\s+{other}|{own}\s+is\s+not\s+None\s+else\s+{other}"
    found = re.findall(ways, code_of(definition.text))
    return any(vocabulary.size_of(each) == "E" for one in found for each in one if each)


def _is_switch(name: str, definition: Definition) -> bool:
    """Whether its call asks for this size before it does something, `if self._size is not None:`, and its constructor never."""
    asks = re.compile(rf"^\s*if\s+(?:self\._?)?{re.escape(name)}\s*(?:is\s+not\s+None\s*)?:", re.MULTILINE)
    build, _, call = code_of(definition.text).partition("def forward(")
    return asks.search(call) is not None and asks.search(build) is None


_WITHOUT_TABLE = re.compile(
    r"register_buffer\(\s*[\"'](\w+)[\"'],\s*None\b[\s\S]*\bself\.\1\["
)  # and cuts it whatever it is


def _is_bias_of_a_layer(name: str, text: str) -> bool:
    """Whether a flag is handed on as that of a layer: `bias=qkv_bias`, `Linear(dim, 3 * dim, qkv_bias)`, or to a class."""
    given = rf"bias\w*\s*=\s*(?:\w+\.)*{re.escape(name)}\b|\b[A-Z]\w*\([^\n]*(?<![\w.]){re.escape(name)}\b(?!\s*[=:])"
    return re.search(given, code_of(text)) is not None


def _rotation(parameter: Parameter, text: str) -> str | None:
    """What to give a parameter with the name of a rotation: one that turns nothing, where the code calls it; or None."""
    kept = re.search(rf"self\.(\w+)\s*=\s*{re.escape(parameter.name)}\b", text)
    called = kept is not None and re.search(rf"self\.{kept[1]}(?:\.\w+)?\(", text) is not None
    return positions.NO_TURN if called else "False" if re.match("use_|is_|with_", parameter.name) else "None"


def _is_window_of_two(name: str, text: str) -> bool:
    """Whether an argument is the height and the width of a window, which the code takes apart."""
    own = rf"(?:self\.)?{re.escape(name)}\b"
    apart = rf"{own}\[1\]|\w+\s*,\s*\w+\s*=\s*{own}\s*$"
    return "window" in name.lower() and re.search(apart, text, re.MULTILINE) is not None


def _is_side_of_a_window(name: str, text: str) -> bool:
    """Whether an argument is both sides of a window, which has a table of biases for each distance in it."""
    own = rf"(?:self\.)?{re.escape(name)}\b"
    has_table = re.search(rf"2\s*\*\s*{own}\s*-\s*1|(?<!\w){own}\s*\*\s*2\s*-\s*1", text)
    squared = re.search(rf"(?<!\w){own}\s*(?:\*\s*{own}|\*\*\s*2\b)", text)
    return "window" in name.lower() and has_table is not None and squared is not None


_A_LAYER = re.compile(r"(?:^|_)(?:fc|linear|proj|projection)(?:_layer)?s?$")
_SCALES = re.compile(r"(?:use_?|is_?|with_?|do_?)?scal(?:e|ed|ing)(?:_?attn\w*|_?att\w*|_?scores?)?")


def allowed(name: str, text: str) -> list[str]:
    """The texts that a source allows for an argument, in quotes: assert kind in ("dot", "general")."""
    compared = re.findall(rf"\b{re.escape(name)}\s*==\s*([\"'][\w-]+[\"'])", text)
    listed = re.findall(rf"\b{re.escape(name)}\s+(?:not\s+)?in\s*[\[({{]([^\])}}]*)[\])}}]", text)
    every = ", ".join(compared + listed if compared else listed[:1])
    return re.findall(r"'[\w-]+'", every.replace('"', "'"))


def _end_of_layers(name: str, definition: Definition, text: str) -> str | None:
    """I or D for a width that every layer made of two arguments of the constructor goes from, or to; else None."""
    given = r"(?:{}\s*=\s*)?(?:self\.)?(\w+)\s*"
    layers = re.findall(rf"Linear\(\s*{given.format('in_features')},\s*{given.format('out_features')}[,)]", text)
    names = {one.name for one in definition.build}
    between = [(one, other) for one, other in layers if one != other and {one, other} <= names]
    ends = {"I" for one, _ in between if one == name} | {"D" for _, other in between if other == name}
    return ends.pop() if len(ends) == 1 else None


def _for_contract(symbol: str, name: str, names: list[str], contract: Contract, default: str | None) -> str | None:
    if contract.has_score and symbol in ("E", "D", "C", "I"):
        return scores.symbol_of(name, contract)
    symbols = [each for each, _ in contract.arguments]
    if contract.is_block and symbol in ("False", "None") and _IS_CAUSAL.search(name):
        return "True"
    if contract.is_block and symbol in ("p", "0.0"):
        return "0.0" if "att" in name.lower() else "p"
    if "M" in symbols and symbol == "E" and re.search(r"hidden|inner|mid|units", name.lower()):
        others = [each for each in names if each != name and vocabulary.size_of(each) == "E"]
        return "M" if others else symbol
    if symbol in ("True", "False", "None") and default is not None:
        if symbol == "True":  # a bias or not: as the contract has it
            return "True" if contract.bias and default != "True" else None
        return None if default == symbol or symbol == "None" else symbol
    if symbol == "None":
        return "None"
    if symbol in ("I", "True", "False", "0.0", "L", "sqrt(D)", "1/sqrt(D)", "16", "1e-5"):
        return symbol
    if symbol == "M" and "M" not in symbols:
        return None
    if symbol in ("G", "H//G") and not contract.has_groups:  # one key-value head for each head
        return _for_contract("H", name, names, contract, default) if symbol == "G" else "1"
    if symbol == "p":
        return "p" if contract.has_dropout else "0.0"
    if symbol == "H" and not contract.has_heads:
        return "1"
    if symbol == "C" and not contract.is_cross:
        return "L" if vocabulary.plain(name) == "contextsize" else "I" if "I" in symbols else "E"
    if "I" not in symbols:
        if symbol == "E" and contract.is_cross and vocabulary.plain(name) in ("kdim", "vdim", "keysize", "valuesize"):
            return "C"
        return symbol
    # A contract with the sizes of one head: input I, keys D, values V.
    plain = vocabulary.plain(name)
    if plain in ("dv", "dvalue", "valuedim", "dimv", "valuesize"):
        return "V" if "V" in symbols else "D"
    others = [each for each in names if each != name and vocabulary.size_of(each) in ("E", "D")]
    if symbol == "E" and others and re.search(r"out|att|head|proj|inner", name.lower()) is None:
        return "I"
    return "D" if symbol == "E" else symbol


_COARSER = re.compile(r"(?:sr|spatial_reduction|reduction)_?ratio")  # how many times fewer places the keys have


def _is_only_kept(name: str, definition: Definition) -> bool:
    """Whether the constructor keeps a value that has the name of no size, and nothing ever uses it."""
    if vocabulary.size_of(name) is not None:
        return False
    every = re.findall(rf"\b{re.escape(name)}\b", code_of(definition.text))
    kept = re.findall(rf"(?m)^\s*self\.{re.escape(name)}\s*=\s*{re.escape(name)}\s*$", code_of(definition.text))
    return len(kept) == 1 and len(every) == 3  # with the parameter itself


_LOGGER = re.compile(r"_?log(?:ger)?|_?LOG(?:GER)?")
_HIDES_LATER_KEYS = re.compile(r"(?i)causal|autoreg")
_IS_CAUSAL = re.compile(r"(?i)causal|decoder|autoreg|^(?:use_?|is_?)?mask(?:ed)?$")


def of_config(name: str, names: list[str], text: str, contract: Contract) -> str:
    if _LOGGER.fullmatch(name):
        return "logger"
    symbol = vocabulary.size_in(name, text)
    if symbol is None and contract.is_block and _HIDES_LATER_KEYS.search(name):
        return "True"
    if symbol is None and re.search(r"theta|rope_?base|base_?freq", name.lower()):
        return "10000.0"
    is_number = rf"\.{re.escape(name)}\s*(?:[<>]=?|//|%)\s*\d|\b(?:int|float)\((?:\w+\.)+{re.escape(name)}\)"
    if symbol is None and re.search(is_number, text):
        return "1"  # as config.pretraining_tp > 1
    if symbol is None:
        return "1e-5" if "eps" in name else "0.02" if re.search(r"init|std|range|scale", name) else "None"
    if symbol == "E" and contract.is_block and "hidden" in name.lower():
        sizes = [vocabulary.size_in(each, text) for each in names if each != name]
        if "E" in sizes and "M" not in sizes:  # emb_dim is the width then
            return "M"
    others = names if "I" in [each for each, _ in contract.arguments] else []
    return _for_contract(symbol, name, others, contract, None) or symbol
