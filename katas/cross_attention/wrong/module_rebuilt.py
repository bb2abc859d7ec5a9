# breaks: parameters
# mistake: module.rebuilt
import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.context_dim, self.num_heads = embed_dim, context_dim, num_heads
        self.head_dim = embed_dim // num_heads

    def split(self, t):
        B, T, _ = t.shape
        return t.reshape(B, T, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, context, keep=None):
        q_proj = nn.Linear(self.embed_dim, self.embed_dim)
        k_proj = nn.Linear(self.context_dim, self.embed_dim)
        v_proj = nn.Linear(self.context_dim, self.embed_dim)
        q, k, v = self.split(q_proj(x)), self.split(k_proj(context)), self.split(v_proj(context))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        out = weights @ v
        out = out.transpose(1, 2).reshape(x.size(0), x.size(1), -1)
        return nn.Linear(self.embed_dim, self.embed_dim)(out)
