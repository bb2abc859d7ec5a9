"""Which mistakes reproduce an attempt's output: a kata as a pipeline of stages, the ways a stage goes wrong, and the search.

`katas/<slug>/mistakes.py` holds `PIPELINES`, made of `stages`; `catalogue` has the words for every mistake; `search` finds the
smallest set that explains the values, `symptoms` what no value shows, `lines` where the source shows it; `pictures` draws the
weights; `mutants` turns every mistake into an attempt that the hidden tests must fail.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """`Pipeline`, `Probe`, `State` and `variants`, imported when they are asked for: `catalogue` must not import torch."""
    if name in ("Pipeline", "Probe", "State", "Variant", "variants"):
        from attn_kata.diagnosis import pipeline

        return getattr(pipeline, name)
    raise AttributeError(name)
