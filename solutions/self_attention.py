"""Self-attention: the reference. Compare it with your own code."""

import math

from torch import Tensor, nn


class SelfAttention(nn.Module):
    """One head of self-attention over (..., T, input_dim)."""

    def __init__(self, input_dim: int, key_dim: int, value_dim: int) -> None:
        super().__init__()
        # A dot product needs queries and keys of the same size. Values are only averaged, so their size is free.
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., T, input_dim) -> (..., T, value_dim)."""
        # An nn.Linear acts on the last dimension and leaves all others as they are.
        q = self.q_proj(x)  # (..., T, key_dim)
        k = self.k_proj(x)  # (..., T, key_dim)
        v = self.v_proj(x)  # (..., T, value_dim)

        # One dot product has key_dim terms, so the scale is sqrt(key_dim). The sizes of x and v do not matter.
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, T): queries, keys

        # Rows are queries. The weights of each query sum to 1 over the keys, the last dimension.
        weights = scores.softmax(dim=-1)  # (..., T, T)

        return weights @ v  # (..., T, value_dim)
