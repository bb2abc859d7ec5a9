"""Multi-head latent attention: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn


class LatentAttention(nn.Module):
    """Causal attention whose keys and values come from one latent vector for each token."""

    def __init__(self, embed_dim: int, num_heads: int, head_dim: int, latent_dim: int, rope_dim: int) -> None:
        super().__init__()
        if rope_dim % 2 != 0:
            raise ValueError(f"rope_dim is {rope_dim}, and must be even: columns turn in pairs")
        self.num_heads, self.head_dim, self.rope_dim = num_heads, head_dim, rope_dim
        self.q_proj = nn.Linear(embed_dim, num_heads * (head_dim + rope_dim), bias=False)
        self.kv_down = nn.Linear(embed_dim, latent_dim, bias=False)
        self.k_up = nn.Linear(latent_dim, num_heads * head_dim, bias=False)
        self.v_up = nn.Linear(latent_dim, num_heads * head_dim, bias=False)
        self.k_rope = nn.Linear(embed_dim, rope_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * head_dim, embed_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, E) -> (B, T, E)."""
        T = x.shape[1]
        q_content, q_rotary = self._heads(self.q_proj(x)).split([self.head_dim, self.rope_dim], dim=-1)
        # A cache would hold these two for each token, L + R numbers, instead of 2 * H * D.
        latent, k_rotary = self.kv_down(x), self.k_rope(x).unsqueeze(1)  # (B, T, L), (B, 1, T, R)
        k_content, v = self._heads(self.k_up(latent)), self._heads(self.v_up(latent))  # (B, H, T, D)

        # Content has no position: k_up could not be folded into the query, if its result were turned.
        q_rotary, k_rotary = self._turned(q_rotary), self._turned(k_rotary)
        scores = q_content @ k_content.transpose(-2, -1) + q_rotary @ k_rotary.transpose(-2, -1)  # (B, H, T, T)
        scores = scores / math.sqrt(self.head_dim + self.rope_dim)

        later = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))

    def _heads(self, projected: Tensor) -> Tensor:
        """(B, T, H * n) -> (B, H, T, n)."""
        return projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _turned(self, part: Tensor) -> Tensor:
        """Each pair of neighbouring columns turned by its token's position: (..., T, R)."""
        T, R = part.shape[-2:]
        exponents = torch.arange(0, R, 2, device=part.device, dtype=torch.float64) / R
        positions = torch.arange(T, device=part.device, dtype=torch.float64)
        angles = positions[:, None] * 10000.0**-exponents  # (T, R / 2)
        cos, sin = angles.cos().to(part.dtype), angles.sin().to(part.dtype)
        first, second = part[..., 0::2], part[..., 1::2]
        return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)
