"""Numbers as people type them: `1_536`, `1.3e9`, `2^20`, `4 * 2^20`, `1.5k`, `128 KiB`, `3 TFLOPs`, `33 %`.

Unit libraries read these otherwise than people mean them here (in `1.5k` and `12 m`, k is Boltzmann's constant and m is
metre or milli), and follow case. So the few units are named here. KiB, MiB, … are powers of 1024, and k, KB, M, … of 1000.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from attn_kata.errors import UsageError

Unit = Literal["", "bytes", "FLOPs", "%"]

_PREFIXES: Mapping[str, float] = {
    "": 1,
    "k": 1e3,
    "m": 1e6,
    "g": 1e9,
    "t": 1e12,
    "p": 1e15,
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
    "pi": 2**50,
}
_NUMBER = r"[+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_FACTOR = re.compile(rf"({_NUMBER})\s*(?:(?:\^|\*\*)\s*([+-]?\d+))?", re.I | re.A)
_QUANTITY = re.compile(
    rf"((?:{_FACTOR.pattern})(?:\s*[*×]\s*(?:{_FACTOR.pattern}))*)\s*([kmgtp]i?)?\s*(bytes|byte|b|flops|flop|%)?",
    re.I | re.A,
)
_UNITS: Mapping[str, Unit] = {
    "": "",
    "%": "%",
    "b": "bytes",
    "byte": "bytes",
    "bytes": "bytes",
    "flop": "FLOPs",
    "flops": "FLOPs",
}
_LONGEST = 60  # characters
_MOST_POWER = 64


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number, and what it counts where that was said."""

    value: float
    unit: Unit


def parse(text: str) -> Quantity:
    """The quantity that was typed. Raises UsageError for what is no finite number."""
    found = _QUANTITY.fullmatch(text.strip()) if len(text.strip()) <= _LONGEST else None
    try:
        if found is None:
            raise ValueError("no number")
        value = math.prod(_factor(*factor.groups()) for factor in _FACTOR.finditer(found[1]))
        value *= _PREFIXES[(found[6] or "").lower()]
        if not math.isfinite(value):
            raise ValueError("not finite")
    except (ValueError, ArithmeticError):
        short = text if len(text) <= 40 else text[:39] + "…"
        raise UsageError(
            f"'{short}' is not a number.", next_step="For example: 1536, 1_536, 1.5e3, 1.5k, 2^20, 12 MiB, 33 %"
        ) from None
    return Quantity(value=value, unit=_UNITS[(found[7] or "").lower()])


def text(value: float) -> str:
    """A number as text: a whole number in full, others with four digits."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def _factor(number: str, power: str | None) -> float:
    base = float(number.replace("_", "").replace(",", ""))
    if power is None:
        return base
    if abs(int(power)) > _MOST_POWER:
        raise ValueError("too large a power")
    return float(base ** int(power))
