"""What code drops, and at which rate; and the norms and dropouts that are no part of its attention."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of

_NORMALIZATION = re.compile(r"(?i)(?:my_?)?(?:layer|rms|batch|instance)?_?normali[sz]ation|(?:my_?)?layer_?norm")
_RESIDUAL = re.compile(r"res|proj|out|hidden|ff|path|final", re.IGNORECASE)


def dropping(reading: Reading) -> Reading:
    """The reading of code that drops in every mode, for a kata without dropout: with a rate at which this is seen."""
    build = [
        (name, "0.2" if vocabulary.size_of(name) == "p" and value == "0.0" else value) for name, value in reading.build
    ]
    return replace(reading, build=tuple(build))


def made_in_vain(definition: Definition, structure: Structure) -> tuple[Definition, str] | None:
    """The dropout for weights that it, or what makes its weights, makes and that nothing ever calls: its owner and name.

    Not where a comment has the call, or where another class may call it.
    """
    everything = "\n".join(one.text for one in structure.definitions)
    for one in structure.reach(definition):
        if not one.is_class or (one is not definition and "softmax" not in one.text):
            continue
        for name, made in one.layers.items():
            if (
                made != "Dropout"
                or _of_result(name)
                or re.search(rf"\.{name}\s*=[^=\n]*\(\s*(?:p\s*=\s*)?0?\.?0*\s*\)", one.text)
            ):
                continue
            from_outside = re.search(rf"(?<!self)\.{name}\b|(?<=[\"']){name}(?=[\"'])", everything)
            inherited = re.search(rf"class \w+\([^)]*\b{one.name}\b", everything)
            if len(re.findall(rf"\bself\.{name}\b", one.text)) == 1 and not from_outside and not inherited:
                return one, name
    return None


def bypassed(definition: Definition, structure: Structure, contract: Contract) -> tuple[str, ...]:
    """Norms, and dropouts of the result: no part of the attention."""
    if contract.is_block:
        return ()
    parts = structure.parts(definition)
    dropouts = [(path, owner) for path, made, owner in parts if made == "Dropout"]
    of_weights = [
        path for path, owner in dropouts if "softmax" in owner.text and not _of_result(path.rpartition(".")[2])
    ]
    # Where the contract has no dropout, none is asked for.
    reach = structure.reach(definition)
    given = [*(one.name for one in definition.build), *(name for one in reach for name in one.config_names)]
    settable = any(vocabulary.size_of(name) in ("p", "0.0") for name in given)
    is_asked = contract.has_dropout or (settable and not contract.has_groups)
    unasked = [] if is_asked else [path for path, _ in dropouts]
    found = [path for path, made, _ in parts if _is_norm(made, structure)]
    for path, owner in dropouts:
        *_, before, last = ["", *path.split(".")]
        of_result = before.startswith("to_") if last.isdecimal() else _of_result(last)
        if (
            of_result
            or (of_weights and "softmax" not in owner.text and owner is not definition)
            or (of_weights and owner is definition and path not in of_weights and "softmax" not in owner.text)
        ):
            found.append(path)
    return tuple(dict.fromkeys([*found, *unasked, *_outputs(definition, contract)]))


def _is_norm(made: str, structure: Structure) -> bool:
    """Whether it is a norm, or a function of the source that makes one: Normalize(channels)."""
    maker = structure.find(made)
    if made in vocabulary.NORMS or made.endswith("Norm"):
        return True
    if _NORMALIZATION.fullmatch(made):
        own = code_of(maker.text) if maker is not None else ""
        return maker is None or ("mean" in own and re.search(r"std|var", own) is not None and "softmax" not in own)
    if maker is None or maker.is_class:
        return False
    answers = re.findall(r"\breturn\b([^\n]*)", code_of(maker.text))
    return bool(answers) and all(re.match(r"\s*[\w.]*Norm(?:\dd)?\(", one) for one in answers)


def _outputs(definition: Definition, contract: Contract) -> list[str]:
    """The output layer, where the contract has none: beside layers for q, k and v, or one for all three."""
    if "o" in contract.layers or contract.has_score or not {"q", "qkv"} & set(contract.layers):
        return []
    made = [name for name, made in definition.layers.items() if made == "Linear"]
    fused = [name for name in made if re.search(r"qkv|kqv|c_attn|in_proj", name.lower())]
    outputs = [name for name in made if vocabulary.role_of(name) == "o" and name not in fused]
    others = {vocabulary.role_of(name) for name in made if name not in outputs}
    return outputs if len(outputs) == 1 and (fused or {"q", "k", "v"} <= others) else []


def drops_result_alone(definition: Definition, structure: Structure, bypassed: tuple[str, ...]) -> bool:
    """Whether every dropout of the code acts on the result, by its name and place."""
    paths = [path for path, made, _ in structure.parts(definition) if made == "Dropout"]
    by_function = re.search(r"(?:\bF|functional|torch)\.dropout\(", structure.text(definition)) is not None
    return bool(paths) and not by_function and all(path in bypassed for path in paths)


def rates(definition: Definition, structure: Structure, reading: Reading) -> tuple[str, ...]:
    """Dropouts whose rate the constructor cannot choose: a number, or a default of an inner class that nobody sets."""
    found = []
    for path, made, owner in structure.parts(definition):
        if made != "Dropout" or path in reading.bypassed:
            continue
        name = path.rpartition(".")[2]
        # In a list of layers, any of them: its name is a number.
        made_as = rf"{re.escape(name)}\s*=\s*(?:\w+\.)*"
        if name.isdecimal():
            made_as = rf"{re.escape(path.split('.')[-2])}\s*=\s*(?:\w+\.)*Sequential\((?:[^=]|p *=)*?"
        constant = re.search(rf"self\.{made_as}Dropout\(\s*(?:p\s*=\s*)?[\d.]+\s*\)", owner.text)
        made_by = re.search(rf"\b{owner.name}\(([^()]*(?:\([^()]*\)[^()]*)*)\)", definition.text)
        defaults = all(one.default is not None for one in owner.build if vocabulary.size_of(one.name) == "p")
        unset = owner is not definition and made_by is not None and "drop" not in made_by[1] and defaults
        if constant or (unset and any(vocabulary.size_of(one.name) == "p" for one in owner.build)):
            found.append(path)
    # Of classes inside of the class, which are found by the names of their dropouts.
    inside = re.split(r"^\s+class ", code_of(definition.text), flags=re.MULTILINE)[1:]
    of_inner = [
        name
        for text in inside
        for name in re.findall(r"self\.(\w+)\s*=\s*(?:\w+\.)*Dropout\(\s*(?:p\s*=\s*)?[\d.]+\s*\)", text)
    ]
    return tuple(dict.fromkeys((*found, *(f"*.{name}" for name in of_inner))))


def has_own_rate(definition: Definition, structure: Structure) -> bool:
    """Whether a dropout that minds the mode has a rate that no argument of the constructor and no name at module level sets."""
    names = {name for one in structure.reach(definition) for name in (*one.config_names, *one.reads) if name != "p"}
    # A default of the call, which nobody has to set: forward(self, x, dropout=0.1).
    names -= {parameter.name for parameter in definition.call if re.fullmatch(r"0?\.\d+", parameter.default or "")}
    names |= {parameter.name for parameter in definition.build}
    text = structure.text(definition)
    minding = re.findall(r"dropout\w*\([^\n]*\bself\.training\b", text)
    alone = bool(minding) and len(minding) == len(re.findall(r"\bself\.training\b", text))
    return alone and not any(vocabulary.size_of(name) in ("p", "0.0") for name in names)


def _of_result(name: str) -> bool:
    """Whether a dropout's name says that it acts on the result: `resid_dropout`, `proj_drop`."""
    rest = re.sub(r"drop(?:out)?", "", name.lower())
    return _RESIDUAL.search(rest) is not None and "att" not in rest
