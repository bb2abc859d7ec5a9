"""Self-attention with one fused projection: the reference, to be read beside your own."""

import math

from torch import Tensor, nn


class FusedQKVSelfAttention(nn.Module):
    """One head of self-attention whose queries, keys and values come from one linear layer."""

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        # Three layers of the same input are one layer with three times the rows: x is read once, and one large
        # product keeps the hardware busier than three small ones.
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, input_dim) -> (B, T, output_dim)."""
        # The rows of the weight are ordered q, k, v, so its outputs are too: equal cuts along the last dimension.
        q, k, v = self.qkv_proj(x).chunk(3, dim=-1)  # (B, T, D) each

        # D is what one dot product sums over: output_dim, neither input_dim nor the 3 * output_dim of the projection.
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)

        # Both T have one size, so no error would tell: rows are queries, and the weights sum to 1 along the keys.
        weights = scores.softmax(dim=-1)  # (B, T, T)

        return weights @ v  # (B, T, D)
