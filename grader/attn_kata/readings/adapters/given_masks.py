"""The lines of an adapter that give the contract's mask (True = keep) as the code takes it."""

from __future__ import annotations

from attn_kata.readings.reading import Reading


def as_taken(reading: Reading, whole: str, like: str) -> list[str]:
    """The contract's mask (True = keep) as the code takes it. `whole` is the mask as (B, H, Tq, Tk)."""
    part = {
        "(B, H, T, T)": "",
        "(B, 1, T, T)": "[:, :1]",
        "(B, T, T)": "[:, 0]",
        "(B*H, T, T)": ".flatten(0, 1)",
        "(T, T)": "[0, 0]",
        "(B, 1, 1, T)": "[:, :1, :1]",
        "(B, 1, T)": "[:, 0, :1]",
        "(B, T)": "[:, 0, 0]",
        "(T, T, B)": "[:, 0].permute(1, 2, 0)",
        "(T, B)": "[:, 0, 0].t()",
    }
    found = []
    if reading.mask == "lengths":
        found.append(f"mask = {whole}[:, 0, 0].sum(-1)")
    else:
        if reading.shape != "any":
            found.append(f"mask = {whole}{part[reading.shape]}")
        if reading.mask == "hide":
            found.append("mask = ~mask")
        if reading.mask == "additive":
            lowest = f"_torch.finfo({like}.dtype).min"
            found.append(f"mask = _torch.zeros_like(mask, dtype={like}.dtype).masked_fill(~mask, {lowest})")
        elif reading.mask_type == "int":
            found.append("mask = mask.long()")
        elif reading.mask_type == "float":
            found.append(f"mask = mask.to({like}.dtype)")
        elif reading.shape != "any" and reading.mask == "keep":
            found.append("mask = mask.clone(memory_format=_torch.contiguous_format)  # code may change it in place")
    return found


def where_given(reading: Reading, lines: list[str], shape: str, like: str) -> list[str]:
    """The lines where a mask is given; an open one first for code that needs a mask."""
    if reading.needs_mask:
        return [
            "if mask is None:",
            f"    mask = _torch.ones_like({like}[..., :1], dtype=_torch.bool).new_ones({shape})",
            *lines,
        ]
    return ["if mask is not None:", *(f"    {line}" for line in lines)] if lines else []
