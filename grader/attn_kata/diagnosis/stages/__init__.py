"""The library of stages that katas' pipelines are made of, right and wrong: `from attn_kata.diagnosis import stages as s`.

The state: `x` and `context` (inputs to project), `parameters` (by name), `q k v` (..., T, D), `keep` (bool, broadcastable to
the scores, True = may attend, or None), `scores`, `weights` (..., Tq, Tk), `out`; sizes `H` and whatever a scale names.
"""

from __future__ import annotations

from attn_kata.diagnosis.pipeline import State

# A kata reads one library, whichever of these a stage is kept in.
from attn_kata.diagnosis.stages.heads import *  # noqa: F403
from attn_kata.diagnosis.stages.masks import *  # noqa: F403
from attn_kata.diagnosis.stages.projections import *  # noqa: F403
from attn_kata.diagnosis.stages.scores import *  # noqa: F403
from attn_kata.diagnosis.stages.weights import *  # noqa: F403


def nothing(state: State) -> None:
    """Leave everything as it is."""
