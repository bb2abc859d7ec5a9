# style: a loop over query heads with the formula h // (H / G); -1e9 fill
# edge fails: empty_rows, half_precision
import math

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"{num_heads} does not divide {embed_dim}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
        self.H, self.G = num_heads, num_kv_heads
        D = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, D * num_kv_heads)
        self.v_proj = nn.Linear(embed_dim, D * num_kv_heads)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q = self.q_proj(x).chunk(self.H, dim=-1)
        k = self.k_proj(x).chunk(self.G, dim=-1)
        v = self.v_proj(x).chunk(self.G, dim=-1)
        if mask is not None:
            mask = mask.expand(B, self.H, T, T)
        heads = []
        for h in range(self.H):
            g = h // (self.H // self.G)
            scores = q[h].bmm(k[g].transpose(1, 2)) / math.sqrt(E // self.H)
            if mask is not None:
                scores = scores.masked_fill(mask[:, h].logical_not(), -1e9)
            heads.append(torch.softmax(scores, dim=2).bmm(v[g]))
        return self.o_proj(torch.cat(heads, dim=2))
