"""Grouped attention with a rotary module of its own, as training recipes have it: q, k and v turned inside, mask keeps."""

from typing import Optional

import torch
from torch import nn


class RotaryPositionalEmbeddings(nn.Module):
    def __init__(self, dim: int, max_seq_len: int = 4096, base: int = 10_000):
        super().__init__()
        theta = 1.0 / (base ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
        angles = torch.einsum("i, j -> ij", torch.arange(max_seq_len).float(), theta)
        self.register_buffer("cache", torch.stack([angles.cos(), angles.sin()], dim=-1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rope_cache = self.cache[: x.size(1)]
        xshaped = x.float().reshape(*x.shape[:-1], -1, 2)
        rope_cache = rope_cache.view(1, xshaped.size(1), 1, xshaped.size(3), 2)
        x_out = torch.stack(
            [
                xshaped[..., 0] * rope_cache[..., 0] - xshaped[..., 1] * rope_cache[..., 1],
                xshaped[..., 1] * rope_cache[..., 0] + xshaped[..., 0] * rope_cache[..., 1],
            ],
            -1,
        )
        return x_out.flatten(3).type_as(x)


class GroupedSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, num_kv_heads: Optional[int] = None, max_seq_len: int = 4096):
        super().__init__()
        num_kv_heads = num_kv_heads or num_heads
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.head_dim = embed_dim // num_heads
        self.query = nn.Linear(embed_dim, num_heads * self.head_dim)
        self.key = nn.Linear(embed_dim, num_kv_heads * self.head_dim)
        self.value = nn.Linear(embed_dim, num_kv_heads * self.head_dim)
        self.out = nn.Linear(embed_dim, embed_dim)
        self.pos_embeddings = RotaryPositionalEmbeddings(self.head_dim, max_seq_len=max_seq_len)

    def forward(self, x: torch.Tensor, *, mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        """mask has the shape [b x s x s]; a value of True means that the token takes part in attention."""
        b, s, _ = x.shape
        q = self.pos_embeddings(self.query(x).view(b, s, self.num_heads, self.head_dim))
        k = self.pos_embeddings(self.key(x).view(b, s, self.num_kv_heads, self.head_dim))
        v = self.value(x).view(b, s, self.num_kv_heads, self.head_dim)
        per_kv = self.num_heads // self.num_kv_heads
        k = k.unsqueeze(3).expand(b, s, self.num_kv_heads, per_kv, self.head_dim).reshape(b, s, -1, self.head_dim)
        v = v.unsqueeze(3).expand(b, s, self.num_kv_heads, per_kv, self.head_dim).reshape(b, s, -1, self.head_dim)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * self.head_dim**-0.5
        if mask is not None:
            scores = scores.masked_fill(mask[:, None].logical_not(), float("-inf"))
        out = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, s, -1)
        return self.out(out)
