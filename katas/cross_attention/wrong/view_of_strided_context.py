# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
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

    def forward(self, x, context, keep=None):
        B, Tq, E = x.shape
        H, D = self.num_heads, self.head_dim
        flat = context.view(-1, context.size(-1))  # every token of every sample
        q = self.q_proj(x).unflatten(-1, (H, D)).transpose(1, 2)
        k = self.k_proj(flat).view(B, -1, H, D).transpose(1, 2)
        v = self.v_proj(flat).view(B, -1, H, D).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None, :], -1e9)
        weights = torch.softmax(scores, dim=-1)
        out = weights @ v
        return self.o_proj(out.transpose(1, 2).reshape(B, Tq, E))
