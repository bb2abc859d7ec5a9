"""Whether the code's layers have the sizes that the contract's would have, where it is built with sizes that all differ.

A reading gives the code the contract's weights, which have their own sizes: it computes with them whatever its own are. So a
layer that has the wrong size, or whose size is read wrong, has to be seen here.
"""

from __future__ import annotations

import itertools

from attn_kata.readings.candidates.building import LOOK
from attn_kata.readings.candidates.layers import Shapes, of_first_head
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Layer, Reading

_OF_HEADS = ("heads", "heads_columns", "columns_heads")  # a matrix for each head
_ONE_EACH = (int(LOOK["H"]), int(LOOK["E"]), int(LOOK["D"]))
_Sizes = tuple[int, ...]  # the numbers that a size may have, the likeliest first


def misfit(reading: Reading, shapes: Shapes, contract: Contract) -> str:
    """What is said of the first layer that has other sizes than the contract's; "" for none.

    Where the contract tells no two widths apart, the adapter compares the sizes of every call, too, of all layers.
    """
    if reading.is_one_of_heads or reading.head_width:
        return ""
    if reading.narrow:
        wide = int(LOOK["D"]) * reading.narrow
        found = (
            _wrong(reading.layer(role), shapes, [(size,), (wide,)])
            for role, size in zip("qkv", (int(LOOK["D"]),) * 2 + (wide,), strict=True)
        )
        return next(filter(None, found), "")
    if contract.has_score:
        return _of_score(reading, shapes)
    for role in [one for one in ("q", "k", "v", "o") if one in contract.layers or "qkv" in contract.layers]:
        layer = reading.layer(role)
        of_heads = tuple(shapes.get(layer.weight, ()))
        if (
            layer.layout in _OF_HEADS
            and len(of_heads) == 3
            and sorted(of_heads) != sorted(_ONE_EACH)
            and not contract.has_own_sizes
        ):
            return f"{layer.weight} has the shape {of_heads}, where the sizes {_ONE_EACH} are wanted, in any order"
        wanted = contract.layers.get(role) or contract.layers.get("qkv")
        if wanted is None or layer.layout not in ("rows", "columns") or (role == "o" and "o" not in contract.layers):
            continue
        if ".*" in layer.weight and ".*" not in wanted.name:
            continue  # of one head each, where the contract's is for all
        outputs = "D" if wanted.outputs == "3 * D" else wanted.outputs
        sizes = [_may_be(one, reading) for one in (outputs, wanted.inputs)]
        if role in reading.fused:
            together = [contract.layers.get(one) or wanted for one in reading.fused]
            alike = [_may_be("D" if one.outputs == "3 * D" else one.outputs, reading) for one in together]
            sizes[0] = tuple(sum(each) for each in itertools.product(*alike))
        if role == "o" and may_be_narrow(reading):
            sizes[0] += (int(LOOK["D"]),)
        if said := _wrong(layer, shapes, sizes):
            return said
    return ""


def may_be_narrow(reading: Reading) -> bool:
    """Whether the output may be as wide as one head by design: its constructor is told that width apart."""
    return any(value == "D" for _, value in reading.build)


def _of_score(reading: Reading, shapes: Shapes) -> str:
    """Of a learned score only that its layers fit one another: how wide a query is, the call says alone."""
    q, k, v = (_size(reading.layer(role), shapes) for role in ("q", "k", "v"))
    if reading.fused or q is None or k is None or v is None or reading.without_query:
        return ""
    return _wrong(reading.q, shapes, [(k[0],), (q[1],)]) or _wrong(reading.v, shapes, [(v[0],), (k[0],)])


def _size(layer: Layer, shapes: Shapes) -> tuple[int, int] | None:
    """The outputs and inputs of a layer; None where it is no plain one."""
    shape = tuple(shapes.get(of_first_head(layer.weight), ()))
    if len(shape) != 2 or layer.layout not in ("rows", "columns"):
        return None
    return (shape[1], shape[0]) if layer.layout == "columns" else (shape[0], shape[1])


def _wrong(layer: Layer, shapes: Shapes, sizes: list[_Sizes]) -> str:
    """What is said of a layer whose outputs and inputs are none of these sizes; "" where they are."""
    found = _size(layer, shapes)
    if found is None or all(size in some for size, some in zip(found, sizes, strict=True)):
        return ""
    wanted = (sizes[0][0], sizes[1][0])
    is_turned = layer.layout == "columns"
    return (
        f"{layer.weight} has the shape {found[::-1] if is_turned else found} for E={LOOK['E']}, H={LOOK['H']}, D={LOOK['D']}, "
        f"where {wanted[::-1] if is_turned else wanted} is wanted"
    )


def _may_be(symbol: str, reading: Reading) -> _Sizes:
    """The numbers that a size of the contract may have: code may have one size for two that the contract tells apart."""
    if symbol == "G * D":
        return (int(LOOK["D"] * (1 if reading.one_group else LOOK["G"])),)
    names = {"E": ("E", "C"), "C": ("C", "E"), "V": ("V", "D"), "I": ("I", "E", "D")}.get(symbol, (symbol,))
    names += ("D",) * reading.one_head  # the head is as wide as x
    return tuple(int(LOOK[one]) for one in names)


def plausible(reading: Reading, shapes: Shapes, contract: Contract) -> bool:
    """Whether the layers have the sizes that the contract's would have."""
    if contract.has_score:
        return True
    symbols = [symbol for symbol, _ in contract.arguments]
    if len(reading.fused) == 3 and contract.has_heads and not reading.one_head and "I" not in symbols:
        of_one = LOOK["D"] * 3  # q, k and v of one head: the size was meant for all
        if ".*" not in reading.q.weight and of_one in shapes.get(reading.q.weight, ()):
            return False
    last = reading.q.weight.replace(".0.", f".{LOOK['H'] - 1}.")
    if reading.q.layout == "wide":
        return all(reading.layer(role).layout == "wide" for role in ("q", "k", "v"))
    if contract.has_heads and last != reading.q.weight and last in shapes:
        return False  # each head has layers for all heads: the size was meant for one
    for role in ("q", "k"):
        layer = reading.layer(role)
        shape = shapes.get(of_first_head(layer.weight), ())
        if len(shape) != 2 or role in reading.fused or layer.layout != "rows":
            continue
        wanted = LOOK["D"] if "I" in symbols or ".*" in layer.weight else LOOK["E"]
        if role == "k" and contract.has_groups:
            wanted = LOOK["D"] * (1 if reading.one_group else LOOK["G"])
        if shape[0] != wanted:
            return False
        if role == "q" and "I" not in symbols and ".*" not in layer.weight and shape[1] == LOOK["D"]:
            return False  # x is wider than one head
        built = {value for _, value in reading.sizes}
        if role == "q" and "I" in built and shape[1] == LOOK["D"]:
            return False  # x is no wider than its queries: what has another size has no part in it
    of_output = shapes.get(reading.o.weight, ())
    return len(of_output) != 2 or reading.o.layout != "rows" or "o" not in contract.layers or of_output[1] == LOOK["E"]
