# style: a loop over heads on slices of the columns, torch.stack of the weights, torch.cat of the results
# edge fails: empty_rows, half_precision
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("num_heads does not divide embed_dim")
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))
        self.drop = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        if mask is not None:
            mask = mask.expand(len(q), self.num_heads, q.size(1), k.size(1))
        outs, weights = [], []
        for h in range(self.num_heads):
            cols = slice(h * self.head_dim, (h + 1) * self.head_dim)
            scores = q[..., cols].bmm(k[..., cols].mT) / math.sqrt(self.head_dim)
            if mask is not None:
                scores = scores + torch.where(mask[:, h], 0.0, -1e9)
            weights.append(scores.softmax(-1))
            outs.append(self.drop(weights[-1]).bmm(v[..., cols]))
        return self.o_proj(torch.cat(outs, dim=-1)), torch.stack(weights, dim=1)
