"""The library of stages that katas' pipelines are made of, right and wrong: `from attn_kata.diagnosis import stages as s`.

A stage takes the state, sets attributes of it to new tensors, and never writes into one. It reads and sets

    x (..., Tq, E), context (..., Tk, E)   the inputs to project
    parameters                             the module's parameters by name
    q (..., Tq, D), k (..., Tk, D), v (..., Tk, Dv)
    keep                                   bool, broadcastable to the scores: True = may attend; None = no mask
    scores, weights (..., Tq, Tk)          before and after the softmax
    out (..., Tq, Dv)
    H, G, p, training                      the numbers of query and key-value heads, the probability of dropout, the mode
    empty (..., Tq, 1)                     bool: True where a query has no key to attend to

In order: projections (q, k, v out of the inputs), heads (split, merge, o_proj), groups (of query heads), rotary (positions),
scores (q kᵀ, its scale), masks, weights (softmax, dropout, the mix of values). A wrong stage raises where the mistake raises in
torch: RuntimeError, IndexError.
Sources: Vaswani et al., "Attention Is All You Need" (2017); Srivastava et al., "Dropout" (2014).
"""

from __future__ import annotations

from attn_kata.diagnosis.pipeline import State

# A kata reads one library, whichever of these a stage is kept in.
from attn_kata.diagnosis.stages.groups import *  # noqa: F403
from attn_kata.diagnosis.stages.heads import *  # noqa: F403
from attn_kata.diagnosis.stages.masks import *  # noqa: F403
from attn_kata.diagnosis.stages.projections import *  # noqa: F403
from attn_kata.diagnosis.stages.rotary import *  # noqa: F403
from attn_kata.diagnosis.stages.scores import *  # noqa: F403
from attn_kata.diagnosis.stages.weights import *  # noqa: F403


def nothing(state: State) -> None:
    """Leave the state as it is: for a stage that a mistake leaves out."""
