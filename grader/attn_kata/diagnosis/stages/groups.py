"""Groups of query heads: each key-value head (B, G, T, D) is laid out for the H / G query heads that read it: (B, H, T, D).

The state has H and G. Source: Ainslie et al., "GQA" (2023).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Stage, State

Layout = Callable[[Tensor, State], Tensor]


def group_by(keys: Layout, values: Layout | None = None) -> Stage:
    """The stage that lays out k by `keys` and v by `values`, or both by `keys`."""

    def stage(state: State) -> None:
        state.k, state.v = keys(state.k, state), (values or keys)(state.v, state)

    return stage


def neighbours_share(part: Tensor, state: State) -> Tensor:
    """Query head h reads key-value head h // (H / G): right."""
    return part.repeat_interleave(state.H // state.G, dim=1)


def in_turn(part: Tensor, state: State) -> Tensor:
    """Query head h reads key-value head h % G."""
    return part.repeat(1, state.H // state.G, 1, 1)


def first_only(part: Tensor, state: State) -> Tensor:
    """Every query head reads key-value head 0."""
    return part[:, :1].expand(-1, state.H, -1, -1)


def mean_of_all(part: Tensor, state: State) -> Tensor:
    """Every query head reads the mean of all key-value heads."""
    return part.mean(1, keepdim=True).expand(-1, state.H, -1, -1)


def tokens_mixed(part: Tensor, state: State) -> Tensor:
    """Each token repeated H / G times, and the result read as heads."""
    return part.repeat_interleave(state.H // state.G, dim=2).reshape(part.shape[0], state.H, *part.shape[2:])


def by_count(part: Tensor, state: State) -> Tensor:
    """Query head h reads key-value head h // G: the number of groups taken for their size. Raises IndexError beyond it."""
    return torch.stack([part[:, h // state.G] for h in range(state.H)], dim=1)


def queries_averaged(state: State) -> None:
    """The query heads of a group replaced by their mean."""
    group_by(neighbours_share)(state)
    state.q = state.q.unflatten(1, (state.G, -1)).mean(2).repeat_interleave(state.H // state.G, dim=1)


def groups_in_turn(state: State) -> None:
    """The heads of the result (B, H, T, Dv), in the order (G, H / G), read as (H / G, G)."""
    state.out = state.out.unflatten(1, (state.G, -1)).transpose(1, 2).flatten(1, 2)
