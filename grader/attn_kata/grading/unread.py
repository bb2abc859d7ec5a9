"""What is said of code that could not be read, and of code that the contract alone would not take."""

from __future__ import annotations

import difflib
import re

from attn_kata import definitions
from attn_kata.protocol.usual_names import USUAL_FUNCTION, USUAL_LAYERS
from attn_kata.readings import advice, origin
from attn_kata.readings.choice import NotRead
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading
from attn_kata.readings.source.packages import is_missing
from attn_kata.readings.source.structure import Definition, Structure

NOT_READ = f"{advice.UNREAD} {{kata}}: {{tried}}. {{say}}"

UNEXPLAINED = (
    "under this reading '{property}' does not hold, and no known mistake explains it: {message}.{so_far} The reading may be "
    "wrong. Correct it with --read KEY=VALUE (--read help lists the keys). If the reading is right, add --read sure=yes"
)
# What people call the files of a project of theirs. A package of that name would be somebody else's.
_OF_AN_AUTHOR = re.compile(
    r"\..*|attention|base|blocks|common|configs?|constants|core|data|datasets?|helpers?|layers?|lib|loss(?:es)?|main|models?"
    r"|modules?|net(?:work)?s?|options|preprocess|settings|src|tools|train(?:er)?|transformer|utils?"
)
IF_SURE = ". If the reading is right, add --read sure=yes"


def why(code: Structure, contract: Contract, names: tuple[str, ...], none: NotRead) -> str:
    """Why a source that defines these names has no reading, and what to do."""
    missing = sorted({package for package in code.imports.values() if is_missing(package)})
    tried = "; ".join(none.tried) or "nothing fits"
    say = advice.on(tried)
    framework = definitions.other_framework(code.imports.values())
    if framework in missing or (framework and not missing):  # beside NumPy, a file that is not here may bring torch
        say = f"It imports {framework} and not torch: only PyTorch can be graded"
    elif missing:
        imports = f"These imports are not installed here: {', '.join(missing)}"
        lacks = "NameError" in tried or advice.NOT_IMPORTED in tried
        packages = " ".join(package for package in missing if not _OF_AN_AUTHOR.fullmatch(package))
        install = f", install a package where attn-kata is installed (pip install {packages})," if packages else ""
        ways = f"Put a file of yours beside this one{install} or take out what needs them"
        say = f"{imports}. {ways}" if lacks else f"{imports}. {say}"
    said = NOT_READ.format(kata=contract.kata, tried=tried, say=say)
    if not none.nothing or contract.entry in names:
        return said
    none_of_it = say_missing([contract.entry], names)
    return f"{none_of_it}{'' if none_of_it.endswith('?') else '.'} As code by other names, {said}"


def say_missing(missing: list[str], names: tuple[str, ...]) -> str:
    """That a source lacks names of the contract, what it has, and which of these may be meant."""
    wanted = " and ".join(f'"{name}"' for name in missing)
    found = f"it defines {', '.join(names)}" if names else "it defines no function or class"
    near = [match for name in missing for match in difflib.get_close_matches(name, names, 1, 0.6)]
    hint = f"; is {', '.join(near)} meant to be it?" if near else ""
    return f"it has no {wanted}; {found}{hint}"


def stand_ins(code: Structure, entry: str) -> list[str]:
    """A note for each layer, and for a softmax, that the code takes from what is not here, and that torch's stands for."""
    whole = code.find(entry)
    reads = {name for one in (code.reach(whole) if whole is not None else []) for name in one.reads}
    known = {name: f"nn.{name}" for name in USUAL_LAYERS}
    known[USUAL_FUNCTION] = f"torch.{USUAL_FUNCTION}, along the last dimension where the call gives none"
    known["masked_softmax"] = "a softmax of the scores that a mask keeps, 1 = may attend"
    known["DropPath"] = "a layer that drops nothing"
    known["Conv1D"] = "that of GPT-2: a linear layer with a weight (in, out)"
    found = {name: code.imports[name] for name in known if name in reads and name in code.imports}
    text = "" if whole is None else code.text(whole)
    of_modules = re.findall(rf"\b(\w+)\.({'|'.join(USUAL_LAYERS)})\(", text)  # layers.Linear(…)
    of_modules = [(code.imports[module], name) for module, name in of_modules if module in code.imports]
    found |= {name: package for package, name in of_modules if is_missing(package)}
    left_out = "weight_norm" in reads or (whole is not None and "utils.weight_norm(" in code.text(whole))
    said = "weight_norm is left out: it stores a weight as two parameters, and computes the same"
    return (
        _of_a_base(whole, code)
        + [said] * left_out
        + [
            f"'{package}' is not installed, and its {name} is read as {known[name]}"
            for name, package in found.items()
            if is_missing(package)
        ]
    )


def _of_a_base(definition: Definition | None, code: Structure) -> list[str]:
    """A note for a norm and a dropout that a base class of another file makes, and that are left out."""
    named = None if definition is None else re.match(r"class \w+\((\w+)", definition.text)
    package = code.imports.get(named[1], "") if named is not None else ""
    if definition is None or named is None or not package or not is_missing(package):
        return []
    used = re.findall(r"self\.((?:layer_?)?norm|ln|dropout|drop)\b(?!\s*=[^=])", definition.text)
    own = re.findall(r"self\.(\w+)\s*=(?!=)", definition.text)
    left_out = [name for name in dict.fromkeys(used) if name not in own]
    said = f"'{package}' is not installed, and what its {named[1]} makes is left out: {', '.join(left_out)}"
    return [said] if left_out else []


def by_contract(text: bytes, code: Structure, contract: Contract, reading: Reading) -> str | None:
    """What the contract alone says of a source that nearly has its names: those of the entry, or of half of the layers."""
    entry, strict = contract.entry, "To grade it by the contract: --strict"
    if code.find(entry) is None:
        if not difflib.get_close_matches(entry, [reading.entry], 1, 0.9):
            return None
        return f"By the contract alone, {say_missing([entry], (reading.entry,))} {strict}"
    missing = origin.missing_layers(text, contract)
    if not missing or 2 * len(missing) > len(contract.layers):
        return None
    names = ", ".join(one.name for one in contract.layers.values())
    return f"By the contract alone it fails: it has no {', '.join(missing)}; the contract names {names}. {strict}"
