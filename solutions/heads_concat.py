"""Multi-head attention from single heads: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn


class Head(nn.Module):
    """One head of self-attention: (..., T, input_dim) -> (..., T, value_dim)."""

    def __init__(self, input_dim: int, key_dim: int, value_dim: int) -> None:
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., T, input_dim) -> (..., T, value_dim)."""
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (..., T, key_dim) twice, (..., T, value_dim)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, T)
        return scores.softmax(dim=-1) @ v


class MultiHeadAttentionWrapper(nn.Module):
    """num_heads heads of self-attention over (..., T, input_dim), side by side."""

    def __init__(self, input_dim: int, key_dim: int, value_dim: int, num_heads: int) -> None:
        super().__init__()
        # A ModuleList registers the parameters of the heads as heads.0.…, heads.1.…. Each item is a new Head:
        # [Head(…)] * num_heads would be one head several times.
        self.heads = nn.ModuleList(Head(input_dim, key_dim, value_dim) for _ in range(num_heads))

    def forward(self, x: Tensor) -> Tensor:
        """x (..., T, input_dim) -> (..., T, num_heads * value_dim)."""
        # The fused form gives the same result with one product each for q, k and v. Rows i*D to (i+1)*D of the stacked
        # weight belong to head i, so the same columns of the product are head i's projection. A reshape to (..., H, D)
        # separates the heads, and merging puts them in the same order as cat here.
        return torch.cat([head(x) for head in self.heads], dim=-1)
