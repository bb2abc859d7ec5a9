"""How a definition can be built: its constructor's arguments by their names, defaults and annotations."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata.readings.candidates import (
    arguments,
    dropouts,
    gates,
    head_counts,
    layouts,
    lazy,
    positions,
    unregistered,
)
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Pairs, Reading
from attn_kata.readings.source import usage, vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of, tree_of

# The sizes for looking at parameters: all different, so that a shape says which is which. Rotations want an even D.
LOOK = {"E": 24, "H": 6, "D": 4, "C": 14, "p": 0.0, "I": 34, "V": 22, "L": 256, "G": 2, "M": 44}


def look(reading: Reading) -> dict[str, float]:
    """The sizes for looking at the parameters of code that is read like this."""
    wide = int(LOOK["D"]) * reading.narrow
    size = _size_of_heads(reading)
    of_heads = {"D": size, "E": size * LOOK["H"]} if size != LOOK["D"] else {}
    return LOOK | of_heads | ({"I": wide, "V": wide} if reading.narrow else {})


def _size_of_heads(reading: Reading) -> int:
    """The size of a head for looking at code that takes only multiples of a number: more than heads, so that they differ."""
    if LOOK["D"] % reading.multiple == 0:
        return int(LOOK["D"])
    return reading.multiple * int(LOOK["H"] // reading.multiple + 1)


def in_usual_sizes(shape: tuple[int, ...], reading: Reading) -> tuple[int, ...]:
    """The shape of a parameter of code with heads of another size, as it would be with those of LOOK."""
    size = _size_of_heads(reading)
    if size == LOOK["D"]:
        return shape
    return tuple(one // size * int(LOOK["D"]) if one % size == 0 and one != LOOK["L"] else one for one in shape)


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
    common = replace(common, lazy=lazy.widths(text, contract), unrounded=_ROUNDS.search(code_of(text)) is not None)
    if contract.is_module:
        caches = positions.caches(definition)
        common = replace(common, unturned=positions.unturned(definition, structure), caches=caches)
        common = replace(common, angles=positions.angles(definition, structure), gates=gates.of(definition, structure))
        common = replace(common, registered=unregistered.names(definition, structure))
        common = replace(common, before=definition.before)
    common = replace(common, rates=dropouts.rates(definition, structure, common) if contract.has_dropout else ())
    common = replace(common, own_rate=dropouts.has_own_rate(definition, structure))
    of_weights = contract.is_block or not dropouts.drops_result_alone(definition, structure, common.bypassed)
    if not definition.is_class:  # what the module computes may be the mistake
        plain = tuple((name, value) for name, value in common.globals if name not in structure.computed)
        yield replace(common, globals=plain)
        return
    known: list[tuple[str, str]] = []
    unknown: list[str] = []
    for parameter in definition.build:
        # A block may hand its config on, and ask nothing of it itself.
        if parameter.name in {definition.config, *(one.config for one in reach if one.config)}:
            asked = dict.fromkeys(name for one in (definition, *reach) for name in one.config_names)
            names = [*asked, *(one.name for one in definition.build)]
            known += [(f"{parameter.name}.{name}", arguments.of_config(name, names, text, contract)) for name in asked]
            parts = sorted({name for one in (definition, *reach) for name in one.config_parts})
            known += [(f"{parameter.name}.{name}", "config") for name in parts]
            continue
        if parameter.name.startswith("*"):
            continue
        symbol = arguments.symbol_of(parameter, definition, text, contract)
        symbol = "0.0" if symbol == "p" and not of_weights else symbol
        if symbol == "E" and contract.has_heads and usage.is_given_size_of_head(parameter.name, definition, structure):
            symbol = "D"
        if symbol is not None:
            known.append((parameter.name, symbol))
        elif parameter.default is None:
            unknown.append(parameter.name)
    symbols = [value for _, value in known]
    constants = _constants(definition, {*symbols, *(value for _, value in globals_)}, contract)
    constants += _kept_by_base(definition, structure, known)
    common = replace(common, constants=constants)
    symbols += [value for _, value in constants]
    missing = [symbol for symbol in ("E", "H") if symbol not in symbols and (symbol == "E" or contract.has_heads)]
    guesses: list[tuple[str, ...]] = []
    if unknown:
        pool = [*missing, "E", "H", "D", "None"]
        guesses = list(dict.fromkeys(itertools.permutations(pool, len(unknown))))[:6] if len(unknown) <= 3 else []
        guesses.append(("None",) * len(unknown))
    for guess in guesses or [()]:
        whole = _with_needed_words([*known, *zip(unknown, guess, strict=True)], text)
        headless = "H" not in {value for _, value in (*whole, *common.sizes)} and not head_counts.tells_of_heads(text)
        common = replace(common, one_head=contract.has_heads and not contract.has_groups and headless)
        if contract.has_own_sizes and head_counts.is_one_head(text):
            common = replace(common, globals=head_counts.as_one_of_heads(globals_))
            whole = [*head_counts.as_one_of_heads(tuple(whole))]
        values = {value for _, value in (*whole, *common.sizes)}
        common = replace(common, one_length=arguments.WINDOW in values)
        widths = [name for name, value in whole if value in ("E", "I", "D", "V")]
        if contract.has_own_sizes and len(widths) == 1 and (times := layouts.times_narrower(widths[0], definition)):
            of_x = [(name, "I" if name in widths else value) for name, value in whole]
            yield replace(common, narrow=times, build=_in_order(definition, of_x))
        configured = "I" in [symbol for symbol, _ in contract.arguments]
        if common.one_head and not configured and "E" not in values:  # the size of the one head is the width
            whole = [(name, "E" if value == "D" else value) for name, value in whole]
        if contract.has_groups and not {"G", "H//G"} & {value for _, value in (*whole, *globals_)}:
            if not head_counts.one_group(text):
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
        defaults = _without_widths_that_may_be_none(whole, definition)
        for other in (
            *_otherwise(whole, of_one_head="ModuleList" in text),
            *_with_words(whole, text),
            *of_one_width,
            *defaults,
        ):
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


_SETS = r"(?m)^\s*(?:[\w.]+\s*,\s*)*self\.{}\b(?:\s*,\s*[\w.]+)*\s*(?::[^=\n]+)?=(?!=)"


def _kept_by_base(definition: Definition, structure: Structure, known: list[tuple[str, str]]) -> Pairs:
    """The sizes that its call reads of `self` and it sets nowhere, where its base class of another file may have kept them."""
    node = next(iter(tree_of(definition.text).body), None)
    bases = [ast.unparse(one) for one in node.bases] if isinstance(node, ast.ClassDef) else []
    if not any(base in structure.imports and not base.endswith("Module") for base in bases):
        return ()
    code = code_of(definition.text)
    return tuple(
        (name, value)
        for name, value in known
        if value in ("E", "H", "D", "G", "L") and name.isidentifier()
        if re.search(rf"\bself\.{name}\b", code) and not re.search(_SETS.format(name), code)
    )


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
    if "D" not in map(vocabulary.size_of, names):  # one width for all, where the constructor takes none
        takes_one = {"E", "I", "D", "V"} & {vocabulary.size_of(one.name) for one in definition.build}
        return globals_ if takes_one else tuple((name, "D" if value == "E" else value) for name, value in globals_)
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
    given = [
        (f"{name}.{attribute}", arguments.of_config(attribute, names, text, contract)) for name, attribute in asked
    ]
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


def _without_widths_that_may_be_none(
    pairs: list[tuple[str, str]], definition: Definition
) -> Iterator[list[tuple[str, str]]]:
    """The same without the sizes of which None is the default, which may be something else than one size: three, a shape."""
    may_be_none = {one.name for one in definition.build if one.default == "None"}
    others = [
        (name, value) for name, value in pairs if name not in may_be_none or value not in ("E", "H", "D", "C", "I")
    ]
    if others != pairs:
        yield others


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
        if not widths:  # h_dim: of one head, and of x
            yield [(name, "E" if value == "D" else value) for name, value in pairs]
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


def _in_order(definition: Definition, pairs: list[tuple[str, str]]) -> Pairs:
    order = [parameter.name for parameter in definition.build]
    return tuple(sorted(pairs, key=lambda pair: order.index(pair[0].partition(".")[0])))


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


_PLAIN = re.compile(
    r"(?i)(?:vanilla|naive|manual|plain|standard|eager|normal|default|softmax|basic|dense|full|scaled|scaled_dot(?:_product)?)"
    r"(?:_?att(?:ention|n)?)?"
)


def _with_needed_words(pairs: list[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """The same, with a word for what is plain, of those that the source compares an argument with and raises for all others."""
    found = []
    for name, value in pairs:
        last = name.rpartition(".")[2]
        raises = re.search(rf"\belse:\s*raise\b[^\n]*\b{re.escape(last)}\b", text) is not None
        words = arguments.allowed(last, text) if value == "None" and raises else []
        words = [word for word in words if _PLAIN.fullmatch(word.strip("'"))]
        found.append((name, words[0] if words else value))
    return found


def _with_words(pairs: list[tuple[str, str]], text: str) -> Iterator[list[tuple[str, str]]]:
    """The same, with each of the words that the source compares an argument with, where it is left open."""
    allowed = {name: arguments.allowed(name.rpartition(".")[2], text) for name, value in pairs if value == "None"}
    for place in range(min(max(map(len, allowed.values()), default=0), 3)):
        words = {name: some[min(place, len(some) - 1)] for name, some in allowed.items() if some}
        yield [(name, words.get(name, value)) for name, value in pairs]


def _off(reach: list[Definition]) -> tuple[str, ...]:
    """Attributes that choose a ready-made attention where there is one."""
    text = "\n".join(one.text for one in reach)
    names = dict.fromkeys(
        re.findall(r"self\.(\w*(?:flash|sdpa|fused_att|efficient_att|optimi[sz]ed)\w*)\s*(?::\s*\w+\s*)?=(?!=)", text)
    )
    return tuple(name for name in names if re.search(rf"\bif\s[^\n]*self\.{name}\b(?!\()", text))
