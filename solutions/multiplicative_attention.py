"""Multiplicative attention, Luong's "general": the reference. Compare it with your own code."""

import torch
from torch import Tensor, nn


class MultiplicativeAttention(nn.Module):
    """score(q, k) = qᵀ (k_proj k), not scaled. The sizes of queries and keys may differ."""

    def __init__(self, query_dim: int, key_dim: int) -> None:
        super().__init__()
        # The matrix between q and k projects a key to the size of a query. A bias would add the same number to all scores
        # of one query, and the softmax cancels such a number.
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, keep: Tensor | None = None) -> Tensor:
        """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv), keep (B, Tk) bool -> (B, Tq, Dv)."""
        # Once for each key, not once for each pair of query and key.
        projected = self.k_proj(keys)  # (B, Tk, query_dim)

        # Luong's score has no scale. The learned matrix decides how large the scores are.
        scores = query @ projected.transpose(1, 2)  # (B, Tq, Tk)

        if keep is not None:
            hidden = ~keep[:, None, :]  # (B, 1, Tk): the same for every query of a sample
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)  # (B, Tq, Tk)
        if keep is not None:
            weights = weights.masked_fill(hidden, 0.0)  # only changes a sample without a kept key: all 0

        # The values are not projected: only the keys are.
        return weights @ values  # (B, Tq, Dv)
