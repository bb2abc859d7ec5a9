"""The report as JSON, for other programs; `report.schema.json` beside this file describes it."""

from __future__ import annotations

import json
import math

from attn_kata.report.model import Report
from attn_kata.report.plain import unicode


def render(report: Report, *, width: int = 80, color: bool = False, source: bytes = b"") -> str:
    """The report as indented JSON in ASCII, so that every encoding works. `width`, `color` and `source` are ignored."""
    return json.dumps(_valid(report.to_dict()), indent=2, allow_nan=False) + "\n"


def _valid(value: object) -> object:
    """`value` without what JSON or Unicode cannot express, such as NaN."""
    if isinstance(value, str):
        return unicode(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {unicode(str(key)): _valid(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_valid(item) for item in value]
    return value
