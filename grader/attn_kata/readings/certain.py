"""Exceptions that are the code's own mistakes however it is read: a name that nothing sets, a view that cannot be."""

from __future__ import annotations

import re

import torch

from attn_kata.properties.failures import Raised
from attn_kata.readings.reading import Reading
from attn_kata.readings.search import Search
from attn_kata.readings.structure import Definition, Structure

_LACKS = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
# About strides and views, and about how a function of the source is called: no input has a part in them.
_OF_THE_CODE = re.compile(
    r"view size is not compatible with input tensor's size and stride|is a view and is being modified inplace"
)
_OF_A_CALL = re.compile(r"missing \d+ required positional arg|takes .* positional argument|unexpected keyword argument")


def raises(reading: Reading, search: Search, definition: Definition) -> bool:
    """Whether all that the code raises under the reading is certainly its own mistake, in its own lines."""
    found = search.exceptions(reading, search.unmasked)
    found += search.exceptions(reading, search.masked) if reading.mask != "none" else []
    text = search.structure.text(definition)
    return bool(found) and all(one.frames and _is_certain(one, text, search.structure) for one in found)


def _is_certain(raised: Raised, text: str, structure: Structure) -> bool:
    if raised.types[0] == "AttributeError":
        lacks = _LACKS.search(raised.text)
        if lacks is not None and lacks[1] == "Tensor":
            return not hasattr(torch.Tensor, lacks[2])
        return lacks is not None and _is_never_set(lacks[1], lacks[2], text, structure)
    if raised.types[0] == "TypeError":
        return _OF_A_CALL.search(raised.text) is not None
    return raised.types[0] == "RuntimeError" and _OF_THE_CODE.search(raised.text) is not None


def _is_never_set(name: str, attribute: str, text: str, structure: Structure) -> bool:
    """Whether the class is one of the source, has no base that is not, and nothing in the source sets the attribute."""
    bases = re.search(rf"^class {re.escape(name)}\b(?:\(([^)]*)\))?", text, re.MULTILINE)
    if structure.find(name) is None or bases is None:
        return False
    known = all(
        base.strip() in ("", "object", "Module", "nn.Module", "torch.nn.Module") for base in (bases[1] or "").split(",")
    )
    own = re.escape(attribute)
    sets = rf"\b{own}\b\s*(?::[^=\n]+)?=(?!=)|[\"']{own}[\"']|\bdef {own}\b|setattr"
    return known and re.search(sets, text) is None
