# style: a loop over heads on slices of the columns, torch.cat; -1e9 fill
# edge fails: empty_rows, half_precision
import math

import torch
from torch import nn


def attend(q, k, v, mask, dropout):
    scores = q.bmm(k.permute(0, 2, 1)) / math.sqrt(q.size(2))
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -1e9))
    return dropout(torch.softmax(scores, dim=2)).bmm(v)


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.head_dim, rest = divmod(embed_dim, num_heads)
        if rest != 0:
            raise ValueError(f"{embed_dim} / {num_heads} leaves {rest}")
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x, mask=None):
        B, T, E = x.size()
        if mask is not None:
            mask = mask.expand(B, self.num_heads, T, T)
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        outs = []
        for h in range(self.num_heads):
            cols = slice(h * self.head_dim, (h + 1) * self.head_dim)
            m = None if mask is None else mask[:, h]
            outs.append(attend(q[:, :, cols], k[:, :, cols], v[:, :, cols], m, self.drop))
        return self.o_proj(torch.cat(outs, dim=-1))
