"""Cross-attention: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn


class CrossAttention(nn.Module):
    """Queries from x (B, Tq, E), keys and values from context (B, Tk, context_dim)."""

    def __init__(self, embed_dim: int, context_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        # Keys and values are projected to the size of the queries, so context_dim itself is never split into heads.
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, context: Tensor, keep: Tensor | None = None) -> Tensor:
        """x (B, Tq, E), context (B, Tk, context_dim), keep (B, Tk) bool, True = may be attended to -> (B, Tq, E)."""
        q = self._split(self.q_proj(x))  # (B, H, Tq, D)
        k = self._split(self.k_proj(context))  # (B, H, Tk, D)
        v = self._split(self.v_proj(context))  # (B, H, Tk, D)

        # The dot product of one head has D terms, not E. So the scale is sqrt(D).
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
        if keep is not None:
            hidden = ~keep[:, None, None, :]  # (B, 1, 1, Tk): the same for every head and query
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)  # (B, H, Tq, Tk)
        if keep is not None:
            weights = weights.masked_fill(hidden, 0.0)  # only changes a sample without a kept key: all 0

        mixed = weights @ v  # (B, H, Tq, D)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))  # (B, Tq, H, D) -> (B, Tq, E)

    def _split(self, projected: Tensor) -> Tensor:
        """(B, T, E) -> (B, H, T, D) for any T: first split the columns, then move H before T."""
        return projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
