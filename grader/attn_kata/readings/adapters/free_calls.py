"""The adapter that calls code with inputs of one form after another, whatever they mean: to see what it computes."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from attn_kata.readings.adapters import own_code
from attn_kata.readings.reading import Reading
from attn_kata.readings.source.structure import Definition, Parameter

CALL = "call_theirs"
WIDTH = 24
# Different sizes, so that a shape says which is which, and one width.
_SIZES = dict.fromkeys("ECIVM", WIDTH) | {"H": 4, "D": 6, "L": 64, "G": 4}
_B, _T, _S = 3, 11, 13

# The shapes of the first tensor, and of the further ones: two sequences, then one query beside a sequence.
_SEQUENCES = (("(B, T, E)", "(B, T, E)"), ("(B, T, E)", "(B, S, E)"))
_ONE_QUERY = (
    ("(B, E)", "(B, S, E)"),
    ("(B, 1, E)", "(B, S, E)"),
    ("(B, S, E)", "(B, E)"),
    ("(B, S, E)", "(B, 1, E)"),
    ("(1, B, E)", "(S, B, E)"),
    ("(B, E)", "(S, B, E)"),
    ("(S, B, E)", "(B, E)"),
    ("(S, B, E)", "(1, B, E)"),
    ("(1, B, E)", "(B, S, E)"),
    ("(B, S, E)", "(1, B, E)"),
)
_ONE_SEQUENCE = (("(T, E)", "(T, E)"),)
# For what takes none of these: heads, images, tokens, one query.
_OTHERS = (
    ("(B, H, T, D)", "(B, H, T, D)"),
    ("(B, E, 5, 7)", "(B, E, 5, 7)"),
    ("(B, E, S)", "(B, E, S)"),
    ("(B, T)", "(B, T)"),
    ("(E,)", "(S, E)"),
)
_MASKS = (
    "None",
    "ones(B, S, S)",
    "ones(B, 1, 1, S)",
    "ones(B, S)",
    "ones(S, S)",
    "ones(B, S).float()",
    "ones(B, S, 1).float()",
)
_IS_MASK = re.compile(r"mask|pad|bias", re.IGNORECASE)
_IS_LENGTH = re.compile(r"len(?:gth)?s?$|_lens?\b", re.IGNORECASE)
_IS_PLACE = re.compile(r"pos$|^pos|position|step|offset|index|idx", re.IGNORECASE)
_LENGTHS = "_torch.full((B,), T)"

_TEXT = '''

_called = {theirs}
_torch.manual_seed(0)
for _one in getattr(_called, "parameters", list)():  # first weights may be 0, or alike: those of copied layers are
    _one.data = _torch.randn_like(_one) / 4


def {call}(number):
    """Call the code with the inputs of this number."""
    B, T, S, E, H, D = {B}, {T}, {S}, {E}, {H}, {D}
    _torch.manual_seed(number)

    def floats(*sizes):
        return _torch.randn(*sizes)

    def tokens(*sizes):
        return _torch.randint(0, {H}, sizes)

    def ones(*sizes):
        return _torch.ones(*sizes, dtype=_torch.bool)

    return _called(**[
        {forms}
    ][number]())
'''


@dataclass(frozen=True, kw_only=True)
class Form:
    """The arguments of a call, `q=floats(B, T, E)`.

    of_sequences: they are sequences of tokens; others are for code that takes none.
    """

    arguments: str
    of_sequences: bool


def forms(definition: Definition) -> list[Form]:
    """What a call may be given, the likeliest first: tensors and masks for what has no default, and else nothing."""
    needed = [one for one in definition.call if one.default is None and not one.name.startswith("*")]
    masks = [one.name for one in needed if _IS_MASK.search(one.name)]
    numbers = {one.name: value for one in needed if one.name not in masks and (value := _number(one))}
    tensors = [one.name for one in needed if one.name not in (*masks, *numbers)]
    lengths = [name for name, value in numbers.items() if value == _LENGTHS]
    found: dict[str, Form] = {}
    for (first, further), mask in itertools.product((*_SEQUENCES, *_ONE_QUERY, *_ONE_SEQUENCE, *_OTHERS), _MASKS):
        if mask != "None" and not (masks or lengths):
            continue
        given = [f"{name}={_made(further if place else first)}" for place, name in enumerate(tensors)]
        keys = "S" if "S" in (further if len(tensors) > 1 else first) else "T"
        given += [f"{name}={mask.replace('S', keys)}" for name in masks]
        given += [
            f"{name}={'None' if name in lengths and mask == 'None' else value}" for name, value in numbers.items()
        ]
        form = Form(arguments=", ".join(given), of_sequences=(first, further) not in _OTHERS)
        found.setdefault(form.arguments, form)
    return list(found.values()) if tensors else []


def _made(shape: str) -> str:
    return f"tokens{shape}" if shape == "(B, T)" else f"floats{shape}"


def _number(parameter: Parameter) -> str | None:
    """What is given for a parameter that takes no tensor of numbers; None for a tensor."""
    if parameter.annotation in ("bool", "Optional[bool]"):
        return "False"
    if _IS_LENGTH.search(parameter.name):
        return _LENGTHS
    if parameter.annotation == "int" or _IS_PLACE.search(parameter.name):
        return "0"
    return None


def source(reading: Reading, definition: Definition) -> str:
    """The adapter's text, without its head."""
    build = ", ".join(f"{name}={value}" for name, value in _SIZES.items())
    theirs = f"{own_code.BUILDER}({build}).eval()" if definition.is_class else "_theirs"
    calls = ",\n        ".join(f"lambda: dict({each.arguments})" for each in forms(definition))
    text = _TEXT.format(call=CALL, theirs=theirs, forms=calls, B=_B, T=_T, S=_S, E=WIDTH, H=4, D=6)
    return (own_code.builder(reading) if definition.is_class else "") + text
