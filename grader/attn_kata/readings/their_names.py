"""The code's own names of layers, in the place of the contract's, and the other way round."""

from __future__ import annotations

import re

from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import ROLES, Layer, Reading
from attn_kata.readings.source.structure import Structure


def by_contract_names(source: bytes, reading: Reading, contract: Contract, structure: Structure) -> bytes:
    """The source for finding lines: only what the entry uses, with the contract's names of layers. The lines stay in place."""
    definition = structure.find(reading.entry)
    if definition is None:
        return source
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError:
        return source
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    table = structure.find(reading.table) if reading.table else None
    reach = {one.name for each in (definition, table) if each is not None for one in structure.reach(each)}
    for one in structure.definitions:
        first, last = one.lines
        holds = any(one.name == name.rpartition(".")[0] for name in reach)  # of a static method the class
        if one.name not in reach and not holds:
            lines[first - 1 : last] = [""] * (last - first + 1)
    text = "\n".join(lines)
    for role, own in names(reading, contract).items():
        attribute = _attribute(reading.layer(role))
        if attribute:
            text = re.sub(rf"(?<![\w.])self\.{re.escape(attribute)}\b", f"self.{own}", text)
    used = [name for name in (reading.entry, reading.builder, reading.table) if name]
    # What nothing uses counts as dead beside a helper with a name of a contract, such as causal_mask.
    return "\n".join((text, *used)).encode()


def in_their_names(text: str, reading: Reading, contract: Contract) -> str:
    """A sentence of ours with the code's own names of layers."""
    for role, own in names(reading, contract).items():
        attribute = _attribute(reading.layer(role))
        if attribute:
            text = re.sub(rf"\b{own}\b", attribute, text)
    return text


def names(reading: Reading, contract: Contract) -> dict[str, str]:
    """The contract's name of the layer of each role that has a layer of its own in the code."""
    return {
        role: contract.layers[role].name.rpartition(".")[2]
        for role in ROLES
        if role in contract.layers and reading.layer(role).weight and role not in reading.fused
    }


def _attribute(layer: Layer) -> str:
    """The attribute by which the code calls a layer: `w_q` of `w_q.weight`, "" for one in a list."""
    parts = layer.weight.removesuffix(".weight").split(".")
    named = [part for part in parts if not part.isdecimal() and part != "*"]
    return named[-1] if named and parts[-1] == named[-1] else ""
