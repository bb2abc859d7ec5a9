"""Which mistakes reproduce an attempt's output: a kata as a pipeline of stages, the ways a stage goes wrong, and the search.

`katas/<slug>/mistakes.py` has `PIPELINES`, made of `stages`; `catalogue` has the texts for every mistake; `search` finds the
smallest set that explains the values; `symptoms` finds mistakes that no value shows; `lines` finds the source line;
`pictures` draws the weights; `mutants` turns every mistake into an attempt that the hidden tests must fail.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """`Pipeline`, `Probe`, `State` and `variants`, imported on first use: `catalogue` must not import torch."""
    if name in ("Pipeline", "Probe", "State", "Variant", "variants"):
        from attn_kata.diagnosis import pipeline

        return getattr(pipeline, name)
    raise AttributeError(name)
