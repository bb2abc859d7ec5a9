"""Grouped-query attention: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn


class GroupedQueryAttention(nn.Module):
    """Self-attention with num_heads query heads and num_kv_heads key-value heads over (B, T, E), E = embed_dim."""

    def __init__(self, embed_dim: int, num_heads: int, num_kv_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"num_kv_heads {num_kv_heads} does not divide num_heads {num_heads}")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, num_kv_heads * self.head_dim)
        self.v_proj = nn.Linear(embed_dim, num_kv_heads * self.head_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, T, E), mask bool, broadcastable to (B, H, T, T), True = may attend -> (B, T, E)."""
        B, T, _ = x.shape
        H, G, D = self.num_heads, self.num_kv_heads, self.head_dim
        q = self.q_proj(x).unflatten(-1, (H, D)).transpose(1, 2)  # (B, H, T, D)
        k = self.k_proj(x).unflatten(-1, (G, D)).transpose(1, 2)  # (B, G, T, D)
        v = self.v_proj(x).unflatten(-1, (G, D)).transpose(1, 2)

        # The H / G query heads of a group are neighbours. Side by side they are H / G * T queries for one key-value head,
        # so that no key has to be copied for each of them.
        grouped = q.reshape(B, G, H // G * T, D)
        scores = grouped @ k.transpose(-2, -1) / math.sqrt(D)  # (B, G, H / G * T, T)
        scores = scores.reshape(B, H, T, T)

        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)  # (B, H, T, T)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)  # for a query with nothing to attend to

        heads = (weights.reshape(B, G, H // G * T, T) @ v).reshape(B, H, T, D)
        return self.o_proj(heads.transpose(1, 2).flatten(2))
