"""The properties that make no sense under a reading."""

from __future__ import annotations

from attn_kata.readings.asking.limits import Limits
from attn_kata.readings.candidates import rotations
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading


def of_reading(reading: Reading, contract: Contract, limits: Limits) -> dict[str, str]:
    """The properties that make no sense under the reading, each with the reason."""
    narrow = (
        not reading.builder
        and reading.mask != "none"
        and (reading.shape not in ("any", "(B, H, T, T)") or reading.mask == "lengths")
    )
    applies = {
        "always": (True, "it is about the contract's own names and checks"),
        "dropout": (contract.has_dropout and not reading.drops, "the code drops no weights"),
        "attention": (reading.entry == reading.builder, "there is only a function that builds a mask"),
        "builder": (bool(contract.builder) and not reading.builder, "there is no function that builds a mask"),
        "mask": (reading.mask == "none", "the code takes no mask"),
        "causal": (reading.causal, "the code always hides later keys"),
        "output": (contract.is_block and bool(limits.as_they_are), "the code has no output layer"),
        "narrow": (narrow, "the code takes masks of one shape only"),
        "lengths": (reading.mask == "lengths", "the code takes lengths, not any mask"),
        "dims": (bool(reading.dims), "it is asked with the usual dimensions only"),
        "bias": (bool(limits.zeroed), "a layer has no bias"),
        "weights": (limits.without_weights, "the code returns no weights of each head"),
        "positions": (
            contract.rotation and rotations.length_is_fixed(reading),
            "nothing says how many positions its tables have",
        ),
        "values": (
            reading.keys_are_values or bool(limits.as_they_are and not contract.has_score),
            "the keys are the values"
            if reading.keys_are_values
            else "the code has no layer that the property could set",
        ),
        "query": (reading.without_query, "the code takes no query"),
        "one_head": (reading.one_head, "the code has one head"),
        "square": (reading.square, "the code needs as many queries as keys"),
    }
    found: dict[str, str] = {}
    for kind, (holds, why) in applies.items():
        for name in contract.left_out.get(kind, ()) if holds else ():
            found.setdefault(name, f"left out under this reading: {why}")
    for one in limits.conventions:
        found |= dict.fromkeys(one.leaves_out, f"left out under this reading: {one.words}")
    return found
