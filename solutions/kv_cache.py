"""Self-attention with a key-value cache: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # k and v, each (B, H, T, D)


class CachedSelfAttention(nn.Module):
    """Causal self-attention over a text that comes in chunks, E = embed_dim."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"num_heads {num_heads} does not divide embed_dim {embed_dim}")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """x (B, Tnew, E), cache (k, v), each (B, H, Tpast, D) -> (B, Tnew, E), (k, v), each (B, H, Tpast + Tnew, D)."""
        q, k, v = (self._split(layer(x)) for layer in (self.q_proj, self.k_proj, self.v_proj))  # (B, H, Tnew, D)

        # torch.cat makes new tensors, so another continuation of the same cache still finds it as it was.
        past = 0
        if cache is not None:
            past = cache[0].shape[2]
            k = torch.cat([cache[0], k], dim=2)  # (B, H, Tpast + Tnew, D)
            v = torch.cat([cache[1], v], dim=2)

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, Tnew, Tpast + Tnew)
        # The new tokens are the last ones: query i stands at position past + i among the keys.
        position = past + torch.arange(q.shape[2], device=x.device)
        visible = torch.arange(k.shape[2], device=x.device) <= position[:, None]  # (Tnew, Tpast + Tnew)
        weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)

        out = (weights @ v).transpose(1, 2).flatten(2)  # (B, Tnew, E)
        return self.o_proj(out), (k, v)

    def _split(self, projected: Tensor) -> Tensor:
        """(B, T, E) -> (B, H, T, D)."""
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
