"""Additive attention: the reference. Compare it with your own code."""

import torch
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose score is score_proj(tanh(q_proj(q) + k_proj(k))) (Bahdanau et al., 2015)."""

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        # Query and key may have different sizes. Both are projected to hidden_dim, so that they can be added.
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, keep: Tensor | None = None) -> Tensor:
        """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv), keep (B, Tk) or None -> (B, Tq, Dv)."""
        # Each query and each key is projected once. Then each pair costs only a sum and a tanh.
        q = self.q_proj(query)[:, :, None, :]  # (B, Tq, 1, hidden_dim)
        k = self.k_proj(keys)[:, None, :, :]  # (B, 1, Tk, hidden_dim)

        # The tanh acts on the sum. Without it, or with a separate tanh for each of the two, the query would add the same
        # number to the scores of all keys. The softmax cancels such a number.
        scores = self.score_proj(torch.tanh(q + k)).squeeze(-1)  # (B, Tq, Tk, hidden_dim) -> (B, Tq, Tk)

        # No scale: the score is a sum of hidden_dim bounded numbers with learned weights.
        if keep is not None:
            hidden = ~keep[:, None, :]  # (B, 1, Tk): the same for every query of a sample
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)  # (B, Tq, Tk)
        if keep is not None:
            weights = weights.masked_fill(hidden, 0.0)  # only changes a sample without a kept key: all 0

        return weights @ values  # (B, Tq, Dv)
