"""A pre-norm transformer block: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which a token sees itself and earlier tokens."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, E) -> (B, T, E)."""
        T = x.shape[1]
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )  # (B, H, T, D) each
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, T)
        later = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


class TransformerBlock(nn.Module):
    """A pre-norm block of a decoder: causal attention with num_heads heads, and an mlp of width mlp_dim."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim)
        self.attention = CausalSelfAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim)
        self.mlp_in = nn.Linear(embed_dim, mlp_dim)
        self.mlp_out = nn.Linear(mlp_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)  # draws anew in each branch, in train() only

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, E) -> (B, T, E)."""
        # x itself goes straight through: only what the branches add to it is normalised and dropped.
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp_out(F.gelu(self.mlp_in(self.norm2(x)))))
