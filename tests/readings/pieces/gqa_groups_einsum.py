"""Grouped-query attention by einsum: the queries get a dimension of groups, and no key is copied."""

import torch
from torch import nn


class GroupedAttention(nn.Module):
    def __init__(self, dim, heads=8, kv_heads=2):
        super().__init__()
        dim_head = dim // heads
        self.heads, self.kv_heads = heads, kv_heads
        self.scale = dim_head**-0.5
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(dim, 2 * kv_heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x, mask=None):
        """mask: bool, (b, n). True marks real tokens; the others are not attended to."""
        b, n, _ = x.shape
        q = self.to_q(x).view(b, n, self.kv_heads, self.heads // self.kv_heads, -1)
        k, v = self.to_kv(x).chunk(2, dim=-1)
        k, v = (t.view(b, n, self.kv_heads, -1) for t in (k, v))
        sim = torch.einsum("b i g r d, b j g d -> b g r i j", q, k) * self.scale
        if mask is not None:
            sim = sim.masked_fill(~mask[:, None, None, None, :], -torch.finfo(sim.dtype).max)
        attn = sim.softmax(dim=-1)
        out = torch.einsum("b g r i j, b j g d -> b i g r d", attn, v)
        return self.to_out(out.reshape(b, n, -1))
