"""Multi-head attention with query, key and value: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Attention of query over key and value with num_heads heads, E = embed_dim. Returns the weights too."""

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

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """query (B, Tq, E), key and value (B, Tk, E), mask bool, True = may attend -> (B, Tq, E), (B, H, Tq, Tk)."""
        q = self._split(self.q_proj(query))  # (B, H, Tq, D)
        k = self._split(self.k_proj(key))  # (B, H, Tk, D)
        v = self._split(self.v_proj(value))

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, Tq, Tk)
        # The minimum of the dtype works in every dtype. Unlike -inf, it gives no NaN for a query with nothing to attend to.
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)  # changes only the rows in which everything is masked

        # The caller gets the weights as they are here. Dropout makes a new tensor, and leaves this one alone.
        heads = self.dropout(weights) @ v  # (B, H, Tq, D)
        return self.o_proj(heads.transpose(1, 2).flatten(2)), weights

    def _split(self, projected: Tensor) -> Tensor:
        """(B, T, E) -> (B, H, T, D): first split the columns of each token, then move H before T."""
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
