# style: the textbook lines, one after the other
# edge fails: nothing_to_attend_to
import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def split(self, t):
        B, T, _ = t.shape
        return t.reshape(B, T, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, context, keep=None):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(context)), self.split(self.v_proj(context))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        out = weights @ v
        out = out.transpose(1, 2).reshape(x.size(0), x.size(1), -1)
        return self.o_proj(out)
