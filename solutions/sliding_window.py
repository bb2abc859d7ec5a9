"""A sliding window with attention sinks, and attention under it: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def sliding_window_mask(
    num_queries: int, num_keys: int, window: int, sinks: int = 0, device: torch.device | str | None = None
) -> Tensor:
    """bool (num_queries, num_keys), True where query i may attend to key j: in its window, or a sink."""
    if window < 1:
        raise ValueError(f"window is {window}, and must be at least 1")
    if sinks < 0:
        raise ValueError(f"sinks is {sinks}, and must be at least 0")
    # The queries are the last positions: the last query is at the position of the last key.
    query = torch.arange(num_keys - num_queries, num_keys, device=device)[:, None]  # (Tq, 1)
    key = torch.arange(num_keys, device=device)  # (Tk,)
    near = query - key < window
    return (key <= query) & (near | (key < sinks))  # no query sees a sink that is in its future


def sliding_window_attention(q: Tensor, k: Tensor, v: Tensor, window: int, sinks: int = 0) -> Tensor:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv) -> (B, H, Tq, Dv)."""
    mask = sliding_window_mask(q.shape[-2], k.shape[-2], window, sinks, device=q.device)

    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
    # Masked before the softmax, so that the other weights still sum to 1. No row is empty: a query sees itself.
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights @ v
