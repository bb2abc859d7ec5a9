"""How a definition can be built: its constructor's arguments by their names, defaults and annotations."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata.readings.candidates import dropouts, positions, scores, unregistered
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source import usage, vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure, code_of, tree_of

# The sizes for looking at parameters: all different, so that a shape says which is which. Rotations want an even D.
LOOK = {"E": 24, "H": 6, "D": 4, "C": 14, "p": 0.0, "I": 34, "V": 22, "L": 256, "G": 2, "M": 44}

# To some places, as some sites for practice ask for it.
_ROUNDS = re.compile(r"\bround\([^\n]*\bdecimals\s*=")


def buildings(definition: Definition, structure: Structure, contract: Contract) -> Iterator[Reading]:
    """Readings that say how the definition is built, and nothing else yet."""
    empty = Reading(kata=contract.kata, entry=definition.name, is_class=definition.is_class)
    reach = structure.reach(definition)
    read = {name for one in reach for name in structure.globals & one.reads if _is_read_at_module_level(name, one)}
    text = structure.text(definition)
    sizes = [(name, vocabulary.size_in(name, text)) for name in sorted(structure.globals & read)]
    globals_ = tuple((name, symbol) for name, symbol in sizes if symbol in ("E", "H", "D", "p", "L", "G", "M", "0.0"))
    globals_ += _of_global_configs(definition, reach, contract)
    globals_ = _beside_one_head(globals_, definition, reach, contract)
    common = replace(
        empty, globals=globals_, off=_off(reach), bypassed=dropouts.bypassed(definition, structure, contract)
    )
    common = replace(common, lazy="LazyLinear" in text, unrounded=_ROUNDS.search(code_of(text)) is not None)
    if contract.is_module:
        caches = positions.caches(definition)
        common = replace(common, unturned=positions.unturned(definition, structure), caches=caches)
        common = replace(common, angles=positions.angles(definition, structure))
        common = replace(common, registered=unregistered.names(definition, structure))
        common = replace(common, before=definition.before)
    common = replace(common, rates=dropouts.rates(definition, structure, common) if contract.has_dropout else ())
    common = replace(common, own_rate=dropouts.has_own_rate(definition, structure))
    of_weights = contract.is_block or not dropouts.drops_result_alone(definition, structure, common.bypassed)
    if not definition.is_class:
        yield common
        return
    known: list[tuple[str, str]] = []
    unknown: list[str] = []
    for parameter in definition.build:
        # A block may hand its config on, and ask nothing of it itself.
        if parameter.name in {definition.config, *(one.config for one in reach if one.config)}:
            asked = dict.fromkeys(name for one in (definition, *reach) for name in one.config_names)
            names = [*asked, *(one.name for one in definition.build)]
            known += [(f"{parameter.name}.{name}", _config_value(name, names, text, contract)) for name in asked]
            parts = sorted({name for one in (definition, *reach) for name in one.config_parts})
            known += [(f"{parameter.name}.{name}", "config") for name in parts]
            continue
        if parameter.name.startswith("*"):
            continue
        symbol = _symbol(parameter, definition, text, contract)
        symbol = "0.0" if symbol == "p" and not of_weights else symbol
        if symbol == "E" and contract.has_heads and usage.is_given_size_of_head(parameter.name, definition, structure):
            symbol = "D"
        if symbol is not None:
            known.append((parameter.name, symbol))
        elif parameter.default is None:
            unknown.append(parameter.name)
    symbols = [value for _, value in known]
    constants = _constants(definition, {*symbols, *(value for _, value in globals_)}, contract)
    common = replace(common, constants=constants)
    symbols += [value for _, value in constants]
    missing = [symbol for symbol in ("E", "H") if symbol not in symbols and (symbol == "E" or contract.has_heads)]
    guesses: list[tuple[str, ...]] = []
    if unknown:
        pool = [*missing, "E", "H", "D", "None"]
        guesses = list(dict.fromkeys(itertools.permutations(pool, len(unknown))))[:6] if len(unknown) <= 3 else []
        guesses.append(("None",) * len(unknown))
    for guess in guesses or [()]:
        whole = [*known, *zip(unknown, guess, strict=True)]
        headless = "H" not in {value for _, value in (*whole, *common.sizes)} and not _tells_of_heads(text)
        common = replace(common, one_head=contract.has_heads and not contract.has_groups and headless)
        if contract.has_own_sizes and is_one_head(text):
            common = replace(common, globals=_as_one_of_heads(globals_))
            whole = [*_as_one_of_heads(tuple(whole))]
        values = {value for _, value in (*whole, *common.sizes)}
        configured = "I" in [symbol for symbol, _ in contract.arguments]
        if contract.has_groups and not {"G", "H//G"} & {value for _, value in (*whole, *globals_)}:
            if not one_group(text):
                continue  # as many key-value heads as heads: another kata
            common = replace(common, one_group=True)
        if "E" not in values and not configured and contract.has_heads and {"D", "H"} <= values and _is_divided(text):
            yield replace(
                common, build=_in_order(definition, [(name, "E" if value == "D" else value) for name, value in whole])
            )
        yield replace(common, build=_in_order(definition, whole))
        if "H" in symbols and "H" in dict(globals_).values():  # that at module level may be another number
            others = tuple((name, "1" if value == "H" else value) for name, value in globals_)
            yield replace(common, build=_in_order(definition, whole), globals=others)
        of_one_width = [[(name, "E" if value == "C" else value) for name, value in whole]] * contract.is_cross
        of_one_width += [[(name, "D" if value == "I" else value) for name, value in whole]] * contract.has_own_sizes
        for other in (*_otherwise(whole, of_one_head="ModuleList" in text), *_with_words(whole, text), *of_one_width):
            yield replace(common, build=_in_order(definition, other))


_NUMBERS = re.compile(r"^[ \t]+self\.(\w+)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*(?!1\b)\d+[ \t]*$", re.MULTILINE)


def _constants(definition: Definition, known: set[str], contract: Contract) -> Pairs:
    """The number of heads, or the width, where the constructor sets it to a number and gets it from nowhere."""
    if not contract.has_heads:
        return ()
    code = code_of(definition.text)
    set_once = [
        name for name in _NUMBERS.findall(code) if len(re.findall(rf"\bself\.{name}\b[^=\n]*=(?!=)", code)) == 1
    ]
    read = [name for name in set_once if len(re.findall(rf"\bself\.{name}\b", code)) > 1]
    if _has_other_numbers(definition, read):  # which may be the same sizes: math.sqrt(64), width // 8
        return ()
    found = [(name, vocabulary.size_of(name)) for name in read]
    return tuple((name, symbol) for name, symbol in found if symbol in ("E", "H") and symbol not in known)


def _has_other_numbers(definition: Definition, names: list[str]) -> bool:
    """Whether its text has numbers above those of dimensions, beside those that it sets these attributes to."""
    tree = tree_of(definition.text)
    allowed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None and any(isinstance(one, ast.Attribute) and one.attr in names for one in targets):
                allowed |= {id(part) for part in ast.walk(node.value)}
        elif isinstance(node, ast.arguments):
            allowed |= {id(part) for one in node.defaults for part in ast.walk(one)}
    found = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in allowed]
    return any(isinstance(value, int) and value > _MOST_DIMENSIONS for value in found)


_MOST_DIMENSIONS = 4


def of_one_sample(reading: Reading, definition: Definition, structure: Structure) -> Reading:
    """The reading with 1 for the size of the batch, wherever the code sets one."""
    at_module_level = _batches_at_module_level(definition, structure)
    return replace(
        reading,
        build=tuple((name, "1" if value == "16" and _is_of_batch(name) else value) for name, value in reading.build),
        globals=(*reading.globals, *((name, "1") for name in at_module_level)),
    )


def sets_batch(definition: Definition, structure: Structure) -> bool:
    """Whether a shape in its call has a size of the batch that its constructor, its config or the module sets."""
    names = [*(one.name for one in definition.build), *definition.config_names]
    names = [*filter(_is_of_batch, names), *_batches_at_module_level(definition, structure)]
    code = code_of(structure.reached(definition))
    set_in_call = [name for name in names if re.search(rf"(?<![\w.]){name}\s*(?:,[^=\n]*)?=[^=]", code)]
    return any(
        re.search(rf"(?:view|reshape|expand|repeat)\((?:[^()]|\([^()]*\))*\b{name}\b", code)
        for name in names
        if name not in set_in_call
    )


def _batches_at_module_level(definition: Definition, structure: Structure) -> list[str]:
    reads = {name for one in structure.reach(definition) for name in one.reads}
    return sorted(name for name in structure.globals & reads if _is_of_batch(name))


def _is_of_batch(name: str) -> bool:
    return vocabulary.size_of(name.rpartition(".")[2]) == "16"


def _beside_one_head(globals_: Pairs, definition: Definition, reach: list[Definition], contract: Contract) -> Pairs:
    """The sizes at module level, where a width beside the size of one head is that of x: `n_embd` beside `head_size`.

    As one size for both, a division by the width of x would be as right as one by the width of the keys.
    """
    if "I" not in [symbol for symbol, _ in contract.arguments] or contract.has_score or contract.has_heads:
        return globals_
    names = [one.name for one in definition.build] + [name for one in reach for name in one.config_names]
    names += [name.rpartition(".")[2] for name, _ in globals_]
    if "D" not in map(vocabulary.size_of, names):
        return globals_
    return tuple((name, "I" if value == "E" else value) for name, value in globals_)


def _is_divided(text: str) -> bool:
    """Whether the code divides a width among the heads, so that the width it is given is that of all of them."""
    return re.search(r"//|chunk\(\s*(?:self\.)?\w*heads?|split\(", text) is not None


_OF_CONFIGS = ("E", "H", "D", "G", "H//G", "M", "C", "I", "V", "L", "p", "0.0", "1")


def _of_global_configs(definition: Definition, reach: list[Definition], contract: Contract) -> Pairs:
    """The sizes that the code asks of config objects at module level: Config.n_embd. What else it asks, these know."""
    asked = dict.fromkeys(pair for one in reach for pair in one.global_configs)
    text = "\n".join(one.text for one in reach)
    names = [attribute for _, attribute in asked] + [one.name for one in definition.build]
    given = [(f"{name}.{attribute}", _config_value(attribute, names, text, contract)) for name, attribute in asked]
    return tuple((name, value) for name, value in given if value in _OF_CONFIGS)


def _is_read_at_module_level(name: str, definition: Definition) -> bool:
    """Whether a function in the definition reads a name that is no parameter of its own: another one may have it as one."""
    if name not in {one.name for one in (*definition.build, *definition.call)}:
        return True
    for function in ast.walk(tree_of(definition.text)):
        if isinstance(function, ast.FunctionDef):
            names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name]
            is_own = name in {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
            if names and not is_own and all(isinstance(node.ctx, ast.Load) for node in names):
                return True
    return False


def _otherwise(pairs: list[tuple[str, str]], *, of_one_head: bool) -> Iterator[list[tuple[str, str]]]:
    """Sizes of q, k and v may be those of one head, or of all heads; input and output may change places.

    With `of_one_head` an output size may be that of one head, too, or every width but the first: in code with a module per
    head.
    """
    of_groups = [(name, {"G": "H//G", "H//G": "G"}.get(value, value)) for name, value in pairs]
    if of_groups != pairs:  # some count the groups, some what is in a group
        yield of_groups
    if of_one_head:
        widths = [name for name, value in pairs if value == "E"]
        outs = [name for name in widths if "out" in name.lower()] or widths[1:]
        of_head = [(name, "D" if name in outs else value) for name, value in pairs]
        if of_head != pairs:
            yield of_head
    for one, other in (("E", "D"), ("D", "E"), ("I", "D")):
        swaps = {one: other, other: one} if one == "I" else {one: other}
        changed = [
            (
                name,
                swaps.get(value, value)
                if one == "I" or re.search(r"q|k|v|query|key|value|att", name.lower())
                else value,
            )
            for name, value in pairs
        ]
        if changed != pairs:
            yield changed


def _tells_of_heads(text: str) -> bool:
    """Whether the code has names of several heads: not of one, as AttentionHead and SingleHead, nor of its size."""
    names = set(re.findall(r"\w*head\w*", code_of(text), re.IGNORECASE))
    of_one = re.compile(
        r"\w*(?:[a-z](?<!ulti)(?<!um)Head|(?<!\bn)(?<!_n)(?<!num)(?<!ulti)_head|(?i:single|one)_?(?i:head)\w*)"
    )
    return any(not of_one.fullmatch(name) and vocabulary.size_of(name) != "D" for name in names)


_LAYERS_OF = re.compile(r"self\.(\w+)\s*=\s*(?:\w+\.)*Linear\(\s*[^,()]+,\s*(?:out_features\s*=\s*)?([^,()]+?)\s*[,)]")


def one_group(text: str) -> bool:
    """Whether the keys have the width of one head, and the queries do not: multi-query attention."""
    widths: dict[str, str] = {}
    for name, width in _LAYERS_OF.findall(text):
        plain = vocabulary.plain(name)
        role = "k" if "kv" in plain and "q" not in plain else vocabulary.role_of(name)
        widths.setdefault(role or "", re.sub(r"^2\s*\*\s*|\s*\*\s*2$|\b\w+\.", "", width))
    beside = re.search(
        r"Linear\([^()]*\+\s*2\s*\*\s*(?:\w+\.)*(\w+)\s*[,)]", text
    )  # q, and one head of keys and values
    if beside is not None and vocabulary.size_of(beside[1]) == "D":
        return True
    of_keys, of_queries = (vocabulary.size_of(widths.get(role, "")) for role in ("k", "q"))
    if widths.get("k") and re.sub("q(?:uery)?", "k", widths.get("q", "")) == re.sub("key", "k", widths["k"]):
        return False  # dim_q and dim_k: one width by two names
    of_all = of_queries not in ("D", None) or "*" in widths.get("q", "")
    return of_keys == "D" and "q" in widths and of_all


def is_one_head(text: str) -> bool:
    """Whether q and k have the width of one head, by its name or as x // heads, and nothing is split or joined."""
    widths = {vocabulary.role_of(name): width for name, width in _LAYERS_OF.findall(text)}
    of_one = [_is_of_one_head(widths.get(role, ""), text) for role in ("q", "k")]
    return all(of_one) and re.search(_SPLITS, text) is None


def _is_of_one_head(width: str, text: str) -> bool:
    """Whether a width is that of one head: by its name, as x // heads, or as a name that is set to that."""
    name = width.rpartition(".")[2]
    if "//" in width or vocabulary.size_of(name) == "D":
        return True
    return name.isidentifier() and re.search(rf"\b{name}\s*=\s*[\w.]+\s*//\s*[\w.]*head", text) is not None


_SPLITS = r"ModuleList|\.(?:view|reshape|unflatten|split|chunk|unfold)\(|rearrange|einsum|\b(?:cat|stack|split|chunk)\("


def _as_one_of_heads(pairs: Pairs) -> Pairs:
    """The sizes of one head of several: the width is that of x, and as many heads share it as make keys of width D."""
    return tuple(
        (name, _OF_ONE_OF_HEADS.get(vocabulary.size_of(name.rpartition(".")[2]) or "", value)) for name, value in pairs
    )


_OF_ONE_OF_HEADS = {"H": "I//D", "E": "I"}


def _in_order(definition: Definition, pairs: list[tuple[str, str]]) -> Pairs:
    order = [parameter.name for parameter in definition.build]
    return tuple(sorted(pairs, key=lambda pair: order.index(pair[0].partition(".")[0])))


PLACE_OF_LAYER = re.compile(r"(?i)layer_?(?:idx|id|index|num|number|i)")


def _symbol(parameter: Parameter, definition: Definition, text: str, contract: Contract) -> str | None:
    """What to give a parameter of the constructor, or None to leave it out or to guess."""
    if parameter.default is None and contract.is_module and positions.is_rotation(parameter.name):
        return _rotation(parameter, text)
    if parameter.default in (None, "None") and _LOGGER.fullmatch(parameter.name):
        return "logger"
    handed = rf"deepcopy\(\s*{re.escape(parameter.name)}\s*\)|self\.\w+\s*=\s*{re.escape(parameter.name)}\s*(?:#.*)?$"
    if parameter.default is None and _A_LAYER.search(parameter.name.lower()) and re.search(handed, text, re.MULTILINE):
        return "linear"
    if parameter.default is None and PLACE_OF_LAYER.fullmatch(parameter.name):
        return "1"
    symbol = vocabulary.size_in(parameter.name, text)
    allowed = _allowed(parameter.name, text)
    of_scores = contract.has_score and len(allowed) > 1 and scores.kind_of(contract, allowed) in allowed
    if of_scores or (contract.has_score and scores.KIND.search(parameter.name.lower())):
        return scores.kind_of(contract, allowed)
    if allowed and parameter.default is None:
        return allowed[0]
    if parameter.default == "False" and _SCALES.fullmatch(parameter.name.lower()):
        return "True"  # whether the scores are divided
    if parameter.default in ("True", "False") and symbol not in ("True", "False", "None"):
        return None  # a flag with the name of a size: talking_heads=False
    if symbol is None:
        if parameter.default is not None:
            return None
        return {"bool": "False", "float": "0.0", "str": "None"}.get(parameter.annotation)
    if symbol in ("sqrt(D)", "1/sqrt(D)") and parameter.default is not None:
        return None
    if symbol == "True" and "bias" in parameter.name.lower() and not _is_bias_of_a_layer(parameter.name, text):
        return None  # of parameters of its own, which the contract's layers do not have
    if symbol == "L" and parameter.default == "None" and _WITHOUT_TABLE.search(text) is None:
        return None  # a table of that length that it can do without
    is_size = parameter.name.lower().endswith("size")
    is_size = is_size or re.search(rf"Linear\(\s*{re.escape(parameter.name)}\s*,", text) is not None
    if symbol in ("E", "D") and parameter.default in ("0", "1", "-1", "-2") and not is_size:
        return None  # an axis, with the name of a size: row_dim=0
    if symbol == "E" and "I" in [each for each, _ in contract.arguments] and not contract.has_score:
        symbol = _end_of_layers(parameter.name, definition, text) or symbol
    return _for_contract(symbol, parameter.name, [one.name for one in definition.build], contract, parameter.default)


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


def with_scales(reading: Reading, text: str) -> list[Reading]:
    """The reading; and where its builder sets a scale, by which the code divides and multiplies, that the other way round.

    Where it does one of the two alone, a scale that is applied the wrong way round is a mistake.
    """
    applied = [re.search(rf"{sign}\s*(?:\w+\.)*(?:temp|scal)\w*", code_of(text)) for sign in (r"(?<!\*)\*(?!\*)", "/")]
    if not all(applied):
        return [reading]
    inverse = {"sqrt(D)": "1/sqrt(D)", "1/sqrt(D)": "sqrt(D)"}
    other = tuple((name, inverse.get(value, value)) for name, value in reading.build)
    return list(dict.fromkeys((reading, replace(reading, build=other))))


def _with_words(pairs: list[tuple[str, str]], text: str) -> Iterator[list[tuple[str, str]]]:
    """The same, with each of the words that the source compares an argument with, where it is left open."""
    allowed = {name: _allowed(name.rpartition(".")[2], text) for name, value in pairs if value == "None"}
    for place in range(min(max(map(len, allowed.values()), default=0), 3)):
        words = {name: some[min(place, len(some) - 1)] for name, some in allowed.items() if some}
        yield [(name, words.get(name, value)) for name, value in pairs]


_A_LAYER = re.compile(r"(?:^|_)(?:fc|linear|proj|projection)(?:_layer)?s?$")
_SCALES = re.compile(r"(?:use_?|is_?|with_?|do_?)?scal(?:e|ed|ing)(?:_?attn\w*|_?att\w*|_?scores?)?")


def _allowed(name: str, text: str) -> list[str]:
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


_LOGGER = re.compile(r"_?log(?:ger)?|_?LOG(?:GER)?")
_IS_CAUSAL = re.compile(r"(?i)causal|decoder|autoreg|^(?:use_?|is_?)?mask(?:ed)?$")


def _config_value(name: str, names: list[str], text: str, contract: Contract) -> str:
    if _LOGGER.fullmatch(name):
        return "logger"
    symbol = vocabulary.size_in(name, text)
    if symbol is None and re.search(r"theta|rope_?base|base_?freq", name.lower()):
        return "10000.0"
    is_number = rf"\.{re.escape(name)}\s*(?:[<>]=?|//|%)\s*\d|\b(?:int|float)\((?:\w+\.)+{re.escape(name)}\)"
    if symbol is None and re.search(is_number, text):
        return "1"  # as config.pretraining_tp > 1
    if symbol is None:
        return "0.02" if re.search(r"init|std|range|eps|scale", name) else "None"
    others = names if "I" in [each for each, _ in contract.arguments] else []
    return _for_contract(symbol, name, others, contract, None) or symbol


def _off(reach: list[Definition]) -> tuple[str, ...]:
    """Attributes that choose a ready-made attention where there is one."""
    text = "\n".join(one.text for one in reach)
    names = dict.fromkeys(
        re.findall(r"self\.(\w*(?:flash|sdpa|fused_att|efficient_att)\w*)\s*(?::\s*\w+\s*)?=(?!=)", text)
    )
    return tuple(name for name in names if re.search(rf"\bif\s[^\n]*self\.{name}\b(?!\()", text))
