"""Which mistakes reproduce an attempt's output: a kata as a pipeline of stages, the ways a stage goes wrong, and the search.

`katas/<slug>/mistakes.py` holds `PIPELINES`, made of `stages`; `catalogue` has the words for every mistake; `search` finds the
smallest set that explains the values, `symptoms` what no value shows, `lines` where the source shows it; `mutants` turns
every mistake into an attempt that the hidden tests must fail.
"""

from .pipeline import Pipeline, Probe, State, Variant

__all__ = ["Pipeline", "Probe", "State", "Variant"]
