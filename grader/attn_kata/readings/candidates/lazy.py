"""Lazy layers, which learn their width from the first input and have no weights before: they get it when they are made."""

from __future__ import annotations

import re

from attn_kata.readings.contract import Contract
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import code_of

_MADE = re.compile(r"self\.(\w+)\s*=\s*(?:torch\.)?(?:nn\.)?LazyLinear\(\s*(?:out_features\s*=\s*)?(\w*)")


def widths(text: str, contract: Contract) -> tuple[str, ...]:
    """The widths of the lazy layers of a source, in the order in which they are made: of all of them alike, one."""
    if "LazyLinear" not in text:
        return ()
    if not contract.has_score:
        return ("E",)
    inputs = {role: layer.inputs for role, layer in contract.layers.items()}
    found = []
    for name, outputs in _MADE.findall(code_of(text)):
        role = vocabulary.role_of(name)
        found.append(inputs.get("v" if outputs == "1" else role or "", contract.arguments[0][0]))
    return tuple(found) or (contract.arguments[0][0],)


def lines(widths: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The lines of an adapter's builder before and after the code is built."""
    before = [
        f"lazy, widths = _nn.LazyLinear, [{', '.join(widths)}]",
        "_nn.LazyLinear = lambda *given, **named: _nn.Linear(widths.pop(0) if widths[1:] else widths[0], *given, **named)",
    ]
    return before, ["_nn.LazyLinear = lazy"]
