"""The hidden tests and the reference for code by other names: with the sizes and the conventions that its reading has."""

from __future__ import annotations

import types
from dataclasses import replace
from pathlib import Path
from typing import Any

from attn_kata.grading import hidden_tests
from attn_kata.grading.hidden_tests import HiddenTest
from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.readings import conventions
from attn_kata.readings.asking import causal, narrowed_probes
from attn_kata.readings.asking.limits import Limits
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading


def of_kata(folder: Path) -> list[HiddenTest]:
    return hidden_tests.load(folder / f"test_{folder.name}.py")


def with_mask(tests: list[HiddenTest], chosen: tuple[str, ...], others: list[HiddenTest]) -> list[HiddenTest]:
    """The chosen ones of the function that takes a mask; those with the name of another test are called "… with mask"."""
    taken = {one.property.name for one in others}
    found = [one for one in tests if one.property.name in chosen]
    return [
        replace(one, property=replace(one.property, name=f"{one.property.name}_with_mask"))
        if one.property.name in taken
        else one
        for one in found
    ]


def possible(
    tests: list[HiddenTest], reading: Reading, *, one_feature: bool, as_wide: bool = False
) -> list[HiddenTest]:
    """The tests, with the sizes of their cases as the code can take them."""
    same = {"Tq": "Tk"} if reading.square else {}
    same |= {"Dv": "D", "context_dim": "E", "query_dim": "key_dim"} if reading.alike else {}
    same |= {"input_dim": "key_dim", "value_dim": "key_dim"} if reading.alike else {}
    same |= {"hidden_dim": "key_dim", "query_dim": "key_dim", "Dv": "key_dim"} if as_wide else {}
    same |= {"value_dim": "key_dim"} if reading.is_one_of_heads or len(reading.fused) == 3 else {}
    same |= {"Dv": "key_dim"} if reading.keys_are_values else {}
    same |= {"D": "E"} if reading.one_head else {}
    fixed = ({"G": 1} if reading.one_group else {}) | ({"H": 1} if reading.one_head else {})
    of_reading = reading.mlp_ratio or reading.head_width or reading.causal or reading.multiple > 1 or reading.narrow
    if not same and not fixed and one_feature and not of_reading:
        return tests
    kept = []
    for test in tests:
        every = [case for case in test.property.cases if not isinstance(case, Drawn)]
        wide = [case for case in every if case is None or case.as_dict().get("E") != 1 or one_feature]
        cases = dict.fromkeys(_alike(case, same, fixed, reading) for case in wide)
        kept.append(replace(test, property=replace(test.property, cases=tuple(cases) or test.property.cases)))
    return kept


def _alike(case: Sizes | None, same: dict[str, str], fixed: dict[str, int], reading: Reading) -> Sizes | None:
    """A case with each of these sizes as large as the other, and with those that the code fixes."""
    if case is None:
        return None
    sizes = case.as_dict()
    equal = {one: sizes[other] for one, other in same.items() if one in sizes and other in sizes}
    if reading.causal and not reading.square and {"Tq", "Tk"} <= sizes.keys():
        equal["Tk"] = max(sizes["Tq"], sizes["Tk"])  # the first of more queries than keys would see no key
    if reading.multiple > 1 and {"D", "E", "H"} <= sizes.keys():
        size = narrowed_probes.rounded_up(int(sizes["D"]), reading.multiple)
        equal |= {"D": size, "E": int(sizes["H"]) * size}
    if reading.head_width and {"D", "E", "H"} <= sizes.keys():
        width = min(int(sizes["D"]), reading.head_width)  # that of the contract's heads, which the code's have room for
        equal |= {"D": width, "E": int(sizes["H"]) * width}
    tokens = int(sizes.get("Tk", sizes.get("T", 0)))
    if reading.one_head and tokens and sizes.get("E") == 2 * tokens * int(sizes.get("H", 1)):
        equal |= {"E": 2 * tokens, "D": 2 * tokens}  # of the properties that read weights off the columns of a head
    if reading.mlp_ratio and {"M", "E"} <= sizes.keys():
        equal["M"] = reading.mlp_ratio * sizes["E"]
    if reading.narrow and "key_dim" in sizes:
        equal |= dict.fromkeys(("input_dim", "value_dim"), reading.narrow * int(sizes["key_dim"]))
    if reading.is_one_of_heads and "key_dim" in sizes:
        equal["input_dim"] = 2 * sizes["key_dim"]
    return Sizes(**(sizes | equal | {one: size for one, size in fixed.items() if one in sizes}))


def reference(
    solution: Path, contract: Contract, limits: Limits | None = None, *, hides: bool = False
) -> types.ModuleType:
    """The reference, with the conventions of `limits`, hiding later keys with `hides`; and the function that takes a mask."""
    also = contract.with_mask
    namespace = types.ModuleType(solution.stem)
    paths = [solution] + ([solution.with_name(f"{also.kata}.py")] if also is not None else [])
    for path in reversed(paths):
        text = path.read_text("utf-8")
        if hides and path == solution:
            text = causal.reference(text)
        if limits is not None:
            text = conventions.reference(text, limits.conventions)
        exec(compile(text, str(path), "exec", dont_inherit=True), namespace.__dict__)
    namespace.__file__ = str(solution)
    return namespace


def keys_as_values(namespace: types.ModuleType, entry: str) -> types.ModuleType:
    """The reference's module with a learned score, which takes the keys for the values."""
    plain: Any = getattr(namespace, entry)

    class KeysAsValues(plain):  # type: ignore[misc]
        def forward(self, query: Any, keys: Any, values: Any, *keep: Any) -> Any:
            return super().forward(query, keys, keys, *keep)

    setattr(namespace, entry, KeysAsValues)
    return namespace
