# style: a reentrant checkpoint around the attention, weights under second names
# edge fails: empty_rows
import math

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("num_heads does not divide embed_dim")
        self.H, self.D = num_heads, embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        self.w_q, self.b_q = self.q_proj.weight, self.q_proj.bias
        self.drop = nn.Dropout(dropout)

    def attend(self, q, k, v, mask):
        scores = q @ k.mT / math.sqrt(self.D)  # (B, H, T, T)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self.drop(scores.softmax(-1)) @ v

    def forward(self, x, mask=None):
        projected = (torch.addmm(self.b_q, x.flatten(0, 1), self.w_q.T).view_as(x), self.k_proj(x), self.v_proj(x))
        q, k, v = (part.unflatten(-1, (self.H, self.D)).transpose(1, 2) for part in projected)
        mixed = checkpoint(self.attend, q, k, v, mask, use_reentrant=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))
