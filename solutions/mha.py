"""Multi-head self-attention: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Self-attention with num_heads heads over (B, T, E), E = embed_dim."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)  # acts in train() only

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, T, E), mask bool, broadcastable to (B, H, T, T), True = may attend -> (B, T, E)."""
        q = self._split(self.q_proj(x))  # (B, H, T, D)
        k = self._split(self.k_proj(x))
        v = self._split(self.v_proj(x))

        # The dot product of one head has D terms, not E, so dividing by sqrt(D) keeps the scores near 1.
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, T, T)

        # With the mask before the softmax, the kept weights still sum to 1. The minimum of the dtype works for every
        # dtype. Unlike -inf, it gives no NaN for a query with nothing to attend to.
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)  # (B, H, T, T)
        # Such a query has equal weights now. Set them to 0. In other rows the masked weights are 0 already.
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)

        heads = self.dropout(weights) @ v  # (B, H, T, D)

        # Undo the split: move H back beside D, then merge the two.
        merged = heads.transpose(1, 2).flatten(2)  # (B, T, H, D) -> (B, T, E)
        return self.o_proj(merged)

    def _split(self, projected: Tensor) -> Tensor:
        """(B, T, E) -> (B, H, T, D): first split the columns of each token, then move H before T."""
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
