"""Causal mask and causal attention: the reference. Compare it with your own code."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def causal_mask(num_queries: int, num_keys: int, device: torch.device | str | None = None) -> Tensor:
    """bool (num_queries, num_keys), True where query i may attend to key j; the queries are the last positions."""
    # Positions in the whole sequence. With fewer queries than keys, for example with a KV cache, the first query is not
    # at position 0. The last query is at the position of the last key.
    key_at = torch.arange(num_keys, device=device)  # (Tk,)
    query_at = torch.arange(num_queries, device=device) + (num_keys - num_queries)  # (Tq,)

    # A query may attend to its own position, so no row is empty.
    return key_at <= query_at[:, None]  # (Tq, Tk)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv) -> (B, H, Tq, Dv)."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)

    # Fill before the softmax, and with -inf, not with 0: exp(-inf) is exactly 0, so later keys get no weight and the
    # other weights still sum to 1. The mask is on q's device and broadcasts over B and H.
    mask = causal_mask(q.shape[-2], k.shape[-2], q.device)  # (Tq, Tk)
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)  # (B, H, Tq, Tk)

    return weights @ v  # (B, H, Tq, Dv)
