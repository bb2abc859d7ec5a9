"""The functions of an adapter: with the contract's names and inputs, around the code's own."""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.readings.adapters.given_masks import as_taken, where_given
from attn_kata.readings.adapters.own_code import BUILDER, arguments, globals_with_values
from attn_kata.readings.candidates import padding_builders
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading

_OF_BUILDERS = {"device": '"cpu"', "dtype": "_torch.float32"}  # what a function that builds a mask must be given


def mask_builder(reading: Reading, contract: Contract) -> str:
    """The contract's function that builds a mask, True = keep, by theirs."""
    if contract.mask == "keys":
        return padding_builders.source(reading, contract.builder)
    meant = {"hide": "~mask.bool()", "additive": "mask == 0"}.get(reading.mask, "mask.bool()")
    if reading.lengths == 1:  # the queries are the last positions
        made, rows = "_their_mask(num_keys)", "[num_keys - num_queries :]"
    else:
        made, rows = "_their_mask(num_queries, num_keys)", ""
    theirs = f"_their_mask = {reading.builder}"
    if reading.entry == reading.builder and reading.call:
        more = "".join(f", {name}={_OF_BUILDERS[value]}" for name, value in reading.call if value in _OF_BUILDERS)
        of_length = any(value == "x" for _, value in reading.call)
        tokens = "_torch.ones(1, length, dtype=_torch.long)" if reading.dims == 2 else "_torch.ones(1, length, 8)"
        given, passed = ("length", tokens) if of_length else ("*lengths", "*lengths")
        theirs = f"def _their_mask({given}):\n    return {reading.builder}({passed}{more})"
    return f"""

{theirs}


def {contract.builder}(num_queries, num_keys, device=None):
    mask = _torch.as_tensor({made})
    mask = {meant}
    return mask.reshape(mask.shape[-2:]){rows}
"""


def source(reading: Reading, contract: Contract) -> str:
    """The functions with the contract's names."""
    called = f"{BUILDER}(D=q.shape[-1], E=q.shape[-1], p=p).train(training)" if reading.is_class else "_theirs"
    lines = ["def _attend(q, k, v, mask=None, p=0.0, training=False):", "    lead = q.shape[:-2]"]
    if reading.float32:
        lines += ["    dtype = q.dtype", "    q, k, v = (part.float() for part in (q, k, v))"]
    lines += [f"    {line}" for line in _sizes(reading)]
    if reading.builder:
        made = (
            "_their_mask(k.shape[-2])[..., k.shape[-2] - q.shape[-2] :, :]"
            if reading.lengths == 1
            else "_their_mask(q.shape[-2], k.shape[-2])"
        )
        lines.append(f"    mask = {made}")
    if reading.dims == 4:
        lines += [
            "    q, k, v = (",
            "        part.flatten(0, -4) if part.dim() > 4 else part[(None,) * (4 - part.dim())] for part in (q, k, v)",
            "    )",
        ]
    elif reading.dims in (2, 3):
        lines += ["    q, k, v = (part.flatten(0, -3) if part.dim() > 2 else part[None] for part in (q, k, v))"]
    heads_third = reading.dims == 4 and reading.order == "time"
    time_first = reading.dims == 3 and reading.order == "time"  # (T, B, D)
    if reading.mask != "none" and not reading.builder:
        whole = "mask.expand(*lead, q.shape[-2], k.shape[-2])"
        if reading.dims in (2, 3):  # the heads are in the batch: (B H, Tq, Tk)
            given = [f"mask = {whole}.reshape(-1, 1, q.shape[-2], k.shape[-2])"]
            given += as_taken(replace(reading, shape="(B, T, T)") if reading.shape == "any" else reading, "mask", "q")
        else:
            given = as_taken(reading, whole, "q")
        lines += [f"    {line}" for line in where_given(reading, given, "q.shape[-2], k.shape[-2]", "q")]
    if heads_third:
        lines += ["    q, k, v = (part.transpose(1, 2) for part in (q, k, v))"]
    if time_first:
        lines += ["    q, k, v = (part.transpose(0, 1) for part in (q, k, v))"]
    merged = any(value == "H" for _, value in reading.call)
    if merged:  # (B, H, T, D) as (B, T, H D): the code splits the heads itself
        lines += ["    H = q.shape[1]", "    q, k, v = (part.transpose(1, 2).flatten(2) for part in (q, k, v))"]
    if reading.dims == 2:  # one sample and head at a time
        each = (
            "for q, k, v in zip(q, k, v)"
            if reading.mask == "none" or reading.builder
            else "for q, k, v, mask in zip(q, k, v, masks)"
        )
        if reading.mask != "none" and not reading.builder:
            lines.append("    masks = [None] * len(q) if mask is None else mask")
        lines.append(f"    every = [{reading.part(f'{called}({arguments(reading)})')} {each}]")
        lines.append("    out = _torch.stack(every) if isinstance(every[0], _torch.Tensor) else every[0]")
    else:
        lines.append(f"    out = {called}({arguments(reading)})")
    if reading.returns != "tensor" and reading.dims != 2:
        lines.append(f"    out = {reading.part('out')}")
    elif reading.dims:
        lines += ["    if not isinstance(out, _torch.Tensor):", "        return out"]
    lines.append("    return out.reshape(*lead, *out.shape[-2:])" if reading.dims else "    return out")
    if heads_third or time_first:
        lines.insert(-1, f"    out = out.transpose({'1, 2' if heads_third else '0, 1'})")
    if reading.joins:
        lines.insert(-1, "    out = (out.unflatten(-1, (q.shape[1], -1)) if out.dim() == 3 else out).transpose(1, 2)")
    if merged and reading.dims:
        lines.insert(-1, "    out = out.unflatten(-1, (H, -1)).transpose(1, 2) if out.dim() == 3 else out")
    if reading.float32:
        lines.insert(-1, "    out = out.to(dtype) if isinstance(out, _torch.Tensor) else out")
    roles = {"q": "q", "k": "k", "v": "v", "query": "q", "keys": "k", "values": "v", "keep": "mask"}
    passed = ", ".join(
        f"{name}={name}" if name in ("mask", "p", "training") else roles.get(name, name) for name in contract.inputs
    )
    signature = ", ".join(contract.inputs)
    lines += ["", "", f"def {contract.entry}({signature}):", f"    return _attend({passed})"]
    if contract.with_mask is not None:
        lines += ["", "", f"def {contract.with_mask.entry}(q, k, v, mask):", "    return _attend(q, k, v, mask)"]
    return "\n\n\n" + "\n".join(lines) + "\n"


def _sizes(reading: Reading) -> list[str]:
    """The lines that set the sizes which the call is given, and those that it reads at module level."""
    asked = [value for _, value in (*reading.call, *reading.globals)]
    every = {
        "D": "q.shape[-1]",
        "H": "q.shape[-3] if q.dim() > 3 else 1",
        "E": "q.shape[-1] * (q.shape[-3] if q.dim() > 3 else 1)",
        "V": "v.shape[-1]",
        "L": "max(q.shape[-2], k.shape[-2])",
        "G": "q.shape[-3] if q.dim() > 3 else 1",
        "B": "q.shape[0]",
        "T": "q.shape[-2]",
        "S": "k.shape[-2]",
    }
    lines = [f"{name} = {size}" for name, size in every.items() if any(re.search(rf"\b{name}\b", one) for one in asked)]
    lines += ["zeros, ones = q.new_zeros, q.new_ones"] * bool(reading.filled)
    plain = tuple((name, value) for name, value in reading.globals if "." not in name)  # what a config has, it keeps
    if plain and not reading.is_class:
        given = ", ".join(globals_with_values(replace(reading, globals=plain)))
        lines.append(f"_inspect.unwrap(_theirs).__globals__.update({given})")
    return lines
