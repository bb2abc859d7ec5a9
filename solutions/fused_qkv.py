"""Self-attention with one fused projection: the reference. Compare it with your own code."""

import math

from torch import Tensor, nn


class FusedQKVSelfAttention(nn.Module):
    """One head of self-attention whose queries, keys and values come from one linear layer."""

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        # Three layers with the same input are one layer with three times the rows. x is read once, and one large product
        # keeps the hardware busier than three small ones.
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, input_dim) -> (B, T, output_dim)."""
        # The rows of the weight are ordered q, k, v, so the outputs have the same order. Split them into equal parts.
        q, k, v = self.qkv_proj(x).chunk(3, dim=-1)  # (B, T, D) each

        # D is the number of terms in one dot product: output_dim, not input_dim or 3 * output_dim.
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, T, T)

        # Rows are queries, and the weights sum to 1 along the keys. A mistake here raises no error: both T are equal.
        weights = scores.softmax(dim=-1)  # (B, T, T)

        return weights @ v  # (B, T, D)
