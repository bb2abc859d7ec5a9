# style: view and transpose, -inf before the softmax
# edge fails: nothing_to_attend_to
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.h, self.d = num_heads, embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, context, keep=None):
        B, Tq, E = x.shape
        Tk = context.shape[1]
        q = self.q_proj(x).view(B, Tq, self.h, self.d).transpose(1, 2)
        k = self.k_proj(context).view(B, Tk, self.h, self.d).transpose(1, 2)
        v = self.v_proj(context).view(B, Tk, self.h, self.d).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d)
        if keep is not None:
            scores = scores.masked_fill(~keep.unsqueeze(1).unsqueeze(2), float("-inf"))
        out = F.softmax(scores, dim=-1) @ v
        return self.o_proj(out.transpose(1, 2).contiguous().view(B, Tq, E))
