# A layer has a second name, and a weight is kept under a name of its own.
# outcome: passed
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
        self.output = self.o_proj
        self.query_weight = self.q_proj.weight
        self.dropout = nn.Dropout(dropout)  # knows from train() and eval() whether to act

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, T, E), mask bool, broadcastable to (B, H, T, T), True = may attend -> (B, T, E)."""
        q = self._split(self.q_proj(x))  # (B, H, T, D)
        k = self._split(self.k_proj(x))
        v = self._split(self.v_proj(x))

        # One head's dot product sums D terms, not E, so sqrt(D) is what keeps the scores near 1.
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, T, T)

        # Masking before the softmax leaves the kept weights summing to 1. The dtype's own minimum fits every dtype,
        # and unlike -inf it gives no NaN where a query has nothing to attend to.
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)  # (B, H, T, T)
        # Such a query has equal weights now; 0 is what it should have. The other rows have 0 there already.
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)

        heads = self.dropout(weights) @ v  # (B, H, T, D)

        # The split undone: heads beside their columns again, then side by side.
        merged = heads.transpose(1, 2).flatten(2)  # (B, T, H, D) -> (B, T, E)
        return self.o_proj(merged)

    def _split(self, projected: Tensor) -> Tensor:
        """(B, T, E) -> (B, H, T, D): first the columns of each token, then the head in front of time."""
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
