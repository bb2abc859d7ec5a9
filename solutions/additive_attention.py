"""Additive attention: the reference, to be read beside your own."""

import torch
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose score is score_proj(tanh(q_proj(q) + k_proj(k))) (Bahdanau et al., 2015)."""

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int) -> None:
        super().__init__()
        # Query and key may have different sizes: each is brought to hidden_dim, where they can be added.
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, keep: Tensor | None = None) -> Tensor:
        """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv), keep (B, Tk) or None -> (B, Tq, Dv)."""
        # Projected once each, before they meet: the pairs below then cost a sum and a tanh, no product.
        q = self.q_proj(query)[:, :, None, :]  # (B, Tq, 1, hidden_dim)
        k = self.k_proj(keys)[:, None, :, :]  # (B, 1, Tk, hidden_dim)

        # The tanh of the sum is what lets the query matter: without it, or with one tanh for each of the two, the query
        # would add the same number to all keys' scores, and the softmax does not see that.
        scores = self.score_proj(torch.tanh(q + k)).squeeze(-1)  # (B, Tq, Tk, hidden_dim) -> (B, Tq, Tk)

        # No scale: the sum runs over hidden_dim bounded numbers with learned weights.
        if keep is not None:
            hidden = ~keep[:, None, :]  # (B, 1, Tk): the same for every query of a sample
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)  # (B, Tq, Tk)
        if keep is not None:
            weights = weights.masked_fill(hidden, 0.0)  # only changes a sample of which nothing is kept: all 0

        return weights @ values  # (B, Tq, Dv)
